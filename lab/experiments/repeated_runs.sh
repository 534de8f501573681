#!/bin/bash
# Records runs of one program that take turns: as it is (six), a kernel with 2 % more rounds (four), another that reads
# 3 % more (four): bash repeated_runs.sh FOLDER
folder=$1
here=$(dirname "$0")
mkdir -p "$folder"
for number in 1 2 3 4 5 6; do
    timeout 60 python3 -W ignore "$here/repeated_runs.py" "$folder/same$number.json.gz" 20000 256
    [ $number -gt 4 ] && continue
    timeout 60 python3 -W ignore "$here/repeated_runs.py" "$folder/rounds$number.json.gz" 20400 256
    timeout 60 python3 -W ignore "$here/repeated_runs.py" "$folder/bytes$number.json.gz" 20000 263.68
done
