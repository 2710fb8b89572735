"""The public face: what `import sparkmirror as sm` offers to notebooks and jobs."""
