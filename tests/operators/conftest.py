from tests.operators.rows import rows_process

__all__ = ["rows_process"]
