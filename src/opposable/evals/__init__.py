"""What works how well, measured: questions with known answers, scored and reported."""
