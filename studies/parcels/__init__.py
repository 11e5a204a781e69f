"""MPI by travelling threads on a simulated machine of processors in memory."""
