"""Every fault, one module for those that are alike, each with its `FAULTS`; `faults.table` lists them."""
