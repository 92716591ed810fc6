"""What commands print: tables, live tables, and the reports of `explain` and `simulate`. Nothing here decides."""
