"""The commands of `prompts`, by what they do: make prompts, study them, analyse studies."""
