"""Every fault, one module for those that are alike, each with its `FAULTS`; `lab.faults.table` lists them."""
