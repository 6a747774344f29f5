"""Tables as CSV and JSON, as the exports of pages and commands write them."""

from lama_core.reports.table_files import csv_of as csv_of
from lama_core.reports.table_files import json_of_table as json_of_table
