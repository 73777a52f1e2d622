-- Question2Answer 1.8: questions (type Q) with their answers (type A), for tables with the prefix qa_.
-- Hidden and queued posts have other types (Q_HIDDEN, Q_QUEUED, …) and are left out; so are comments.
-- A question closed by another of its kind is linked as its duplicate.
SELECT
    q.postid AS id,
    NULL AS question_id,
    q.title AS title,
    q.content AS body,
    CASE WHEN q.format = 'html' THEN 'html' ELSE 'plain' END AS markup,
    q.tags AS tags,
    q.created AS created,
    CASE WHEN q.closedbyid IS NOT NULL THEN coalesce(q.updated, q.created) END AS closed,
    q.netvotes AS score,
    coalesce(u.handle, q.name) AS author,
    NULL AS accepted,
    (SELECT o.postid FROM qa_posts o WHERE o.postid = q.closedbyid AND o.type = 'Q') AS duplicate_of,
    coalesce(q.updated, q.created) AS updated
FROM qa_posts q
LEFT JOIN qa_users u ON u.userid = q.userid
WHERE q.type = 'Q'
UNION ALL
SELECT
    a.postid,
    a.parentid,
    NULL,
    a.content,
    CASE WHEN a.format = 'html' THEN 'html' ELSE 'plain' END,
    NULL,
    a.created,
    NULL,
    a.netvotes,
    coalesce(u.handle, a.name),
    CASE WHEN q.selchildid = a.postid THEN 1 ELSE 0 END,
    NULL,
    coalesce(a.updated, a.created)
FROM qa_posts a
JOIN qa_posts q ON q.postid = a.parentid AND q.type = 'Q'
LEFT JOIN qa_users u ON u.userid = a.userid
WHERE a.type = 'A'
