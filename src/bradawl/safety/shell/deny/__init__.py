"""The lenient reader: commands that no mode runs, found also in lines that the strict reader gave up."""
