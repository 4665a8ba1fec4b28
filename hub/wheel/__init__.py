"""The package `clawbridge_hub` of the wheel, which holds the folders of the checkout (docs/adr/0121)."""
