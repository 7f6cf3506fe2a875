"""Tools that come with the package and work without a network, a key or a program beside Python."""
