"""R2E-Gym: real commits as tasks, in Apptainer images, as the benchmark trains and validates on them."""
