exec(open('/tmp/b/release/micro.py').read().split("draft=t('make'")[0])
from anonfit.spec.write import to_toml
open('/tmp/b/release/spec.toml','w').write(to_toml(s))
f=pl.read_parquet(source).head(1000); f.write_csv('/tmp/b/release/small.csv')
