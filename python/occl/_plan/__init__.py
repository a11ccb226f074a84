"""What plans have inside: files, buffers, the schedule, what they are to compute."""
