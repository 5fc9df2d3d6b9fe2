"""Write-ahead journal of usage on the local disk, from which a task moves the rows to the store."""
