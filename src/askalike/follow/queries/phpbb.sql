-- phpBB 3.3: topics with their posts, for tables with the prefix phpbb_.
-- Left out: what waits for approval or was deleted (visibility other than 1), topics that were moved away (status 2),
-- links to other sites (forum_type 2). Forums that not everybody may read: add forum_id NOT IN (…) to both WHERE.
-- Since 3.2, bodies are XML of s9e's TextFormatter; older ones are, until phpBB has made them anew, text with BBCode.
-- An edit counts by post_edit_time; a rename alone changes no time, and is found when the topic is read again.
SELECT
    t.topic_id AS id,
    NULL AS question_id,
    t.topic_title AS title,
    p.post_text AS body,
    CASE WHEN p.post_text LIKE '<t>%' OR p.post_text LIKE '<r>%' THEN 's9e' ELSE 'plain' END AS markup,
    f.forum_name AS tags,
    t.topic_time AS created,
    CASE WHEN t.topic_status = 1 THEN t.topic_last_post_time END AS closed,
    t.topic_first_poster_name AS author,
    NULL AS accepted,
    CASE WHEN p.post_edit_time > t.topic_last_post_time THEN p.post_edit_time ELSE t.topic_last_post_time END AS updated
FROM phpbb_topics t
JOIN phpbb_posts p ON p.post_id = t.topic_first_post_id
JOIN phpbb_forums f ON f.forum_id = t.forum_id
WHERE t.topic_visibility = 1 AND t.topic_status <> 2 AND f.forum_type = 1
UNION ALL
SELECT
    p.post_id,
    p.topic_id,
    NULL,
    p.post_text,
    CASE WHEN p.post_text LIKE '<t>%' OR p.post_text LIKE '<r>%' THEN 's9e' ELSE 'plain' END,
    NULL,
    p.post_time,
    NULL,
    CASE WHEN p.post_username <> '' THEN p.post_username ELSE u.username END,
    NULL,
    CASE WHEN p.post_edit_time > p.post_time THEN p.post_edit_time ELSE p.post_time END
FROM phpbb_posts p
JOIN phpbb_topics t ON t.topic_id = p.topic_id
LEFT JOIN phpbb_users u ON u.user_id = p.poster_id
WHERE p.post_visibility = 1 AND t.topic_visibility = 1 AND t.topic_status <> 2 AND p.post_id <> t.topic_first_post_id
