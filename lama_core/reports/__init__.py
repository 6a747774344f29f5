"""Reports of reproduced tables and charts, as data and as an HTML file."""
