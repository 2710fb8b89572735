"""Records, batches and a mirror's own tables as DataFrames: a data source.

Spark finds the module `pyspark_sparkmirror`, which imports these modules when somebody reads.
"""
