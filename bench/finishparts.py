# Writes the parts of a conversion without weights, to time `convert --finish` of a model that does not fit on the disk. Each file has
# its real header and a hole instead of the weights. Beside it is the record that a real part leaves.
#
#   python3 bench/finishparts.py MODEL OUT PLAN_SHA256 VERSION
#
# PLAN_SHA256 is the SHA-256 of the plan in its plain form. VERSION is the program's version, such as 0.1.0. Then: lowtoggle convert MODEL OUT --plan plan.json --finish
import hashlib, json, os, struct, sys
src, out, plan_sha, version = sys.argv[1:5]
fs = sorted(f for f in os.listdir(src) if f.endswith('.safetensors'))
size = [os.path.getsize(f'{src}/{f}') for f in fs]
part = {i: r + 1 for r, i in enumerate(sorted(range(len(fs)), key=lambda i: -size[i]))}
os.makedirs(f'{out}.partial/result'); os.makedirs(f'{out}.partial/records')
common = {"parts_version": 1, "lowtoggle": version, "parts": len(fs), "plan_sha256": plan_sha}
json.dump(common, open(f'{out}.partial/parts.json', 'w'), separators=(',', ':'))
for i, f in enumerate(fs):
    with open(f'{src}/{f}', 'rb') as s:
        n = struct.unpack('<Q', s.read(8))[0]; s.seek(0); head = s.read(8 + n)
    path = f'{out}.partial/result/{f}'
    with open(path, 'wb') as o:
        o.write(head); o.truncate(size[i])
        os.fsync(o.fileno())
    st = os.stat(path)
    json.dump({**common, "part": part[i], "file": f, "source_sha256": '0' * 64, "output_sha256": '0' * 64, "bytes": size[i],
               "head_sha256": hashlib.sha256(head).hexdigest(), "written": f"{st.st_mtime_ns} {st.st_ctime_ns}"},
              open(f'{out}.partial/records/{f}.json', 'w'), separators=(',', ':'))
