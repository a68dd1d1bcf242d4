"""Many ranks of one job: who is late, which link is slow, which pipeline stage has too much to do."""
