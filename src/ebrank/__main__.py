"""`python -m ebrank` is `ebrank`."""

from ebrank.cli import main

if __name__ == "__main__":
    main()
