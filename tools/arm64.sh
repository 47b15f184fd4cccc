#!/bin/sh
# Build for arm64 on another Debian machine, and run tests under qemu: make arm64.
#
# Needs: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user, and meson,
# ninja and cython on the path. Debian's Python of arm64 is unpacked beside the build; NumPy,
# SciPy and scikit-learn are wheels. Arguments are those of pytest. Tests that start other
# programs do not run here: qemu-user translates one process.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
version=${PYTHON_VERSION:-3.11} # that of the Debian release
work=$top/build/arm64
root=$work/root

if ! [ -e "$work/site/numpy" ]; then
    mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/debs" "$root"
    touch "$work/apt/status"
    export APT_CONFIG="$work/apt.conf"
    cat >"$APT_CONFIG" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Dir::State "$work/apt";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt";
END
    apt-get --quiet=2 update
    # what Python and the wheels load
    (cd "$work/debs" && apt-get --quiet=2 download \
        "python$version-minimal" "libpython$version-minimal" "libpython$version-stdlib" \
        "libpython$version-dev" libc6 libgcc-s1 libstdc++6 libgomp1 libexpat1 zlib1g \
        libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libcrypt1)
    for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
    python -m pip install --quiet --target "$work/site" --only-binary=:all: \
        --python-version "$version" --platform manylinux2014_aarch64 \
        --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64 \
        numpy scipy scikit-learn lazy-loader threadpoolctl pytest hypothesis
fi

printf '#!/bin/sh\nexec qemu-aarch64 -L %s %s "$@"\n' "$root" \
    "$root/usr/bin/python$version" >"$work/python"
chmod +x "$work/python"
cat >"$work/cross.ini" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
strip = 'aarch64-linux-gnu-strip'
python = '$work/python'
exe_wrapper = ['qemu-aarch64', '-L', '$root']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
[built-in options]
c_args = ['-I$root/usr/include']
END
cd "$top"
[ -e "$work/cross" ] || meson setup "$work/cross" --cross-file "$work/cross.ini" \
    --prefix /usr -Dpython.platlibdir=/site -Dpython.purelibdir=/site -Dwerror=true
meson install -C "$work/cross" --destdir "$work/dest" --quiet
PYTHONPATH="$work/dest/site:$work/site" "$work/python" -m pytest -q -p no:cacheprovider "$@"
