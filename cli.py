import resource, subprocess, sys, os
confs=[('base',''),('decay','dirty_decay_ms:10000,muzzy_decay_ms:10000'),('thp','thp:always'),('both','thp:always,dirty_decay_ms:10000,muzzy_decay_ms:10000')]
res={n:[] for n,_ in confs}
for i in range(4):
    for n,c in confs:
        e=dict(os.environ); 
        if c: e['_RJEM_MALLOC_CONF']=c
        p=subprocess.Popen([sys.executable,'-m','anonfit','run','/tmp/b/release/spec.toml','--out','/tmp/b/release/outcli','--replace'],env=e,stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL)
        _,st,r=os.wait4(p.pid,0)
        res[n].append((r.ru_utime+r.ru_stime,r.ru_utime,r.ru_stime,r.ru_maxrss//1024,st))
for n,v in res.items(): print(n,'cpu min %.2f  user %.2f sys %.2f rss %d'%(min(x[0] for x in v),min(x[1] for x in v),min(x[2] for x in v),max(x[3] for x in v)),[round(x[0],2) for x in v], v[0][4])
