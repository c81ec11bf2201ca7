# Makes the parts of a conversion from headers alone, to time `convert --finish` of a model that no disk here holds: sparse results
# behind the real headers, each with the record that its part would leave. Nothing in them is a converted weight.
#
#   python3 bench/finishparts.py MODEL OUT PLAN_SHA256 VERSION
#
# PLAN_SHA256 is that of the plan's plain form, VERSION is that of the program (0.1.0). Then: lowtoggle convert MODEL OUT --plan plan.json --finish
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
