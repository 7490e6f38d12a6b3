"""The sole committer: takes operations from the gateway, answers once they are durable."""
