"""What each notebook exports: one file a notebook, one function a stem."""
