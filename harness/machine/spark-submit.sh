#!/usr/bin/env bash
# Starts a driver's JVM as Spark's launcher answered when it was asked for the same before; saves a JVM for each driver.
# What the answer rests on has to be as it was: the end of the arguments, and every variable that the launcher may read.
# Settings that the program adds go before these; those that the launcher reads are not among them. Anything else is
# Spark's own spark-submit.
#
# ONCEPROOF_LAUNCH names a file of texts that end in NUL: the arguments, the variables, what to export (each after their
# number), and the command (harness/components/spark/launcher.py).

spark="${BASH_SOURCE[0]%/*}/spark-submit.spark"
[[ -n "$ONCEPROOF_LAUNCH" && -r "$ONCEPROOF_LAUNCH" ]] || exec "$spark" "$@"
mapfile -d '' -t said <"$ONCEPROOF_LAUNCH"
given=("$@")
at=0
next() {
  part=("${said[@]:at+1:said[at]}")
  at=$((at + 1 + said[at]))
}

next
first=$((${#given[@]} - ${#part[@]}))
((first >= 0)) || exec "$spark" "$@"
for ((i = 0; i < ${#part[@]}; i++)); do
  [[ "${given[first + i]}" == "${part[i]}" ]] || exec "$spark" "$@"
done
for ((i = 0; i < first; i += 2)); do
  [[ "${given[i]}" == --conf ]] || exec "$spark" "$@"
  case "${given[i + 1]}" in
    spark.app.name=* | spark.sql.* | spark.streaming.* | spark.executor.* | spark.cores.max=* | spark.task.*) ;;
    spark.ui.* | spark.default.parallelism=* | spark.shuffle.* | spark.python.* | spark.hadoop.*) ;;
    *) exec "$spark" "$@" ;;
  esac
done

next
declare -A wanted=()
for entry in "${part[@]}"; do wanted["${entry%%=*}"]="${entry#*=}"; done
seen=0
for name in ${!SPARK_@} ${!_SPARK_@} ${!PYSPARK_@} ${!HADOOP_@} ${!YARN_@} ${!JAVA_@} ${!_JAVA_@} ${!JDK_@} \
  ${!LD_LIBRARY_PATH@}; do
  [[ -n "${wanted[$name]+there}" && "${wanted[$name]}" == "${!name}" ]] || exec "$spark" "$@"
  seen=$((seen + 1))
done
((seen == ${#part[@]})) || exec "$spark" "$@"

next
for entry in "${part[@]}"; do export "${entry?}"; done
exec "${said[@]:at}" "$@"
