"""What each intent answers from rows. A handler runs in the thread of the intake, inside its transaction."""
