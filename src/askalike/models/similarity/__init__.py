"""Measures of how alike two texts are, and a ranking SVM over them: the baseline SVM of Lei et al. 2016."""
