# fish completion of zarrc: the first completion of a shell asks the program for the script
zarrc completion fish 2>/dev/null | source
