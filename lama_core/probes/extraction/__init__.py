"""Systems that find answers in texts, beside the language models that know them."""
