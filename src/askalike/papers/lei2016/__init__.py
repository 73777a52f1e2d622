"""The tables of Lei et al. 2016 and of Joshi's thesis 2016, row by row, on AskUbuntu or on what stands in for it."""
