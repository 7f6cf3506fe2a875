"""Skills: folders of instructions and scripts, as tools."""
