"""`python -m ebrank` is `ebrank`."""

from ebrank.cli import main

main()
