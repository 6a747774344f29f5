"""Tables and charts as results, and as an HTML file."""
