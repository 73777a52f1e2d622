-- Flarum 1.x: discussions with their comments, for tables without a prefix.
-- Left out: what is hidden or private. Needs the extensions flarum/tags (tags) and flarum/lock (is_locked); without
-- them, take out the lines that name them. Bodies are XML of s9e's TextFormatter.
SELECT
    d.id AS id,
    NULL AS question_id,
    d.title AS title,
    p.content AS body,
    's9e' AS markup,
    (SELECT group_concat(g.name) FROM discussion_tag dt JOIN tags g ON g.id = dt.tag_id WHERE dt.discussion_id = d.id)
        AS tags,
    d.created_at AS created,
    CASE WHEN d.is_locked = 1 THEN d.last_posted_at END AS closed,
    u.username AS author,
    NULL AS accepted,
    CASE WHEN p.edited_at > d.last_posted_at THEN p.edited_at ELSE d.last_posted_at END AS updated
FROM discussions d
JOIN posts p ON p.id = d.first_post_id
LEFT JOIN users u ON u.id = d.user_id
WHERE d.hidden_at IS NULL AND d.is_private = 0
UNION ALL
SELECT
    p.id,
    p.discussion_id,
    NULL,
    p.content,
    's9e',
    NULL,
    p.created_at,
    NULL,
    u.username,
    NULL,
    CASE WHEN p.edited_at > p.created_at THEN p.edited_at ELSE p.created_at END
FROM posts p
JOIN discussions d ON d.id = p.discussion_id
LEFT JOIN users u ON u.id = p.user_id
WHERE p.type = 'comment' AND p.hidden_at IS NULL AND p.is_private = 0 AND d.hidden_at IS NULL AND d.is_private = 0
    AND p.id <> d.first_post_id
