"""Mutation testing of contracts: does a contract notice what is made wrong in a passing trace?

Belongs here: editing traces (`edits`), making one thing wrong in them (`operators`), what a contract
allows (`freedoms`), which checks it lacks (`cures`), and judging all of it (`testing`). Does not
belong here: any rule: nothing here decides a verdict, the plugins do.
"""
