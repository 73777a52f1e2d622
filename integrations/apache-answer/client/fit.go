package client

import "sort"

// fits returns whether a question is what a search asks for, as far as askalike knows: it holds no views.
func fits(one Found, asked Condition) bool {
	if (asked.Votes > 0 && int(one.question.Score) < asked.Votes) || one.answers < asked.Answers {
		return false
	}
	if asked.Author != "" && asked.Author != one.question.Author {
		return false
	}
	for _, group := range asked.Tags {
		if !overlap(group, one.question.Tags) {
			return false
		}
	}
	return true
}

func overlap(some, others []string) bool {
	for _, one := range some {
		for _, other := range others {
			if one == other {
				return true
			}
		}
	}
	return len(some) == 0
}

// ordered sorts by date or votes; by likelihood, and by activity, which askalike does not hold, the order stays.
func ordered(found []Found, by string) {
	switch by {
	case "newest", "active":
		sort.SliceStable(found, func(i, j int) bool { return found[i].question.Created > found[j].question.Created })
	case "score":
		sort.SliceStable(found, func(i, j int) bool { return found[i].question.Score > found[j].question.Score })
	}
}

// window returns where a page begins and ends; pages count from 1, as Answer's callers do.
func window(many int, asked Condition) (int, int) {
	page, size := asked.Page, asked.PageSize
	if page < 1 {
		page = 1
	}
	if size < 1 || size > mostHits {
		size = mostHits
	}
	if page > 1+many/size {
		return many, many
	}
	first, end := (page-1)*size, page*size
	if first > many {
		first = many
	}
	if end > many {
		end = many
	}
	return first, end
}
