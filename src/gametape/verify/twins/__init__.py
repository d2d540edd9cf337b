"""Must-fail twins: copies of real tests with one expectation contradicted.

The law: for every deterministic implementation that passes the real test, the twin fails. So only expectations are
ever changed, never inputs; and only where the change is certain to be reached. What cannot be shown to obey the law is
left alone: a twin that an honest implementation could pass would flag honest work.
"""
