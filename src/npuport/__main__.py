"""`python -m npuport` is `npuport`."""

from npuport.cli import main

if __name__ == "__main__":
    main()
