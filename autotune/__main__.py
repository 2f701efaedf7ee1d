"""`python -m autotune`, where the console script is not on the path."""

from autotune.cli import main

if __name__ == "__main__":
    main()
