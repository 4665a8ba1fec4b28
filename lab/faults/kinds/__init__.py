"""The faults, related ones in one module. Each module has a list `FAULTS`; `lab.faults.table` joins the lists."""
