"""Chinese sentences of `npuport data clean`, `dropped` and `mix`."""

from __future__ import annotations

CLEANING_SENTENCES = {
    # why records are dropped
    "no JSON object": "不是 JSON 对象",
    "the field with the text is missing or empty": "文本字段缺失或为空",
    "fewer characters than wanted": "字符数不足",
    "more characters than wanted": "字符数过多",
    "read in a wrong encoding, or characters of no writing": "用错误的编码读取，或含有不属于任何文字的字符",
    "base64, hexadecimal numbers, escapes or bits": "base64、十六进制数、转义序列或二进制位",
    "nothing but numbers": "只有数字",
    "markup": "标记语言",
    "web addresses": "网址",
    "signs in place of letters": "符号过多",
    "words of the lists": "含有词表中的词",
    "the same lines or phrases over and over": "行或短语反复出现",
    "another language": "其他语言",
    "a part of a test set": "含有测试集内容",
    "unlikely for the model": "困惑度过高",
    "the same text as an earlier one": "与之前的文本相同",
    "nearly the same text as an earlier one": "与之前的文本几乎相同",
    # the report
    "{path}: {records}, {kept} kept, {dropped} dropped": "{path}：{records}，保留 {kept} 条，丢弃 {dropped} 条",
    "not run: {steps}": "未运行的步骤：{steps}",
    "no languages to keep": "未指定要保留的语言",
    "no word lists": "没有词表",
    "no test sets": "没有测试集",
    "no model": "没有模型",
    "switched off": "已关闭",
    "too short to be looked for: {number} of the texts of test sets": "过短而无法查找：测试集中的 {number} 条文本",
    "{seconds:.0f} s, {speed:.1f} MB/s": "{seconds:.0f} 秒，{speed:.1f} MB/s",
    "stage {name}": "阶段 {name}",
    "handed over to Slurm; {path} fills when its jobs end": "已提交给 Slurm；作业结束后结果出现在 {path}",
    "written: {path}; run it with npuport data clean {quoted}": "已写出 {path}；运行：npuport data clean {quoted}",
    "{measured} (limit {limit})": "{measured}（阈值 {limit}）",
    "of {place}": "重复 {place}",
    # mixing
    "{path}: {documents} drawn, {size} {unit}": "{path}：抽取 {documents}，共 {size}（{unit}）",
    "{number} document": "{number} 篇文档",
    "{number} documents": "{number} 篇文档",
    "documents": "篇文档",
    "characters": "字符",
    "tokens": "token",
    "share": "占比",
    "weight": "权重",
    "epochs": "轮数",
    "give one pipeline file, or sources as NAME=PATH:WEIGHT, not both.": (
        "请只给出一个流水线文件，或只以 NAME=PATH:WEIGHT 的形式给出各来源。"
    ),
    "a source is NAME=PATH:WEIGHT, such as web=cleaned/kept:0.7, not {given}.": (
        "来源的格式为 NAME=PATH:WEIGHT，例如 web=cleaned/kept:0.7，而不是 {given}。"
    ),
    "there is no source with a weight: name files, folders or patterns.": (
        "没有带权重的来源：请给出文件、目录或通配模式。"
    ),
    "the unit tokens takes a tokenizer.": "以 token 为单位时需要 tokenizer。",
    "the source {name} has no inputs.": "来源 {name} 没有输入。",
    "{source} has too little for its weight: the mixture can have {possible}, not {wanted}. "
    "Raise its max-epochs, or lower its weight or the size.": (
        "{source} 的数据不足以满足其权重：混合后最多 {possible}，而不是 {wanted}。"
        "请提高其 max-epochs，或降低其权重或总量。"
    ),
    "{path}: a record has no text in {field} (number {number} from its byte or row group {start}). "
    "npuport data clean drops such records.": (
        "{path}：有一条记录的 {field} 字段没有文本（自字节或行组 {start} 起第 {number} 条）。"
        "npuport data clean 会丢弃这类记录。"
    ),
    "{drawn} texts were drawn, but {written} written: the input changed during the run.": (
        "抽取了 {drawn} 条文本，但写出 {written} 条：输入在运行期间发生了变化。"
    ),
    # errors
    "a worker was ended from outside, most often for memory: take fewer workers or smaller "
    "task-megabytes. The same command goes on where it was.": (
        "一个工作进程被外部终止，多半因内存不足：请减少 workers 或减小 task-megabytes。再次运行同一命令即可继续。"
    ),
    "another run is writing {path}: wait for its end.": "另一个运行正在写 {path}：请等待其结束。",
    "give one pipeline file, or files with texts, not both.": "请只给出一个流水线文件，或只给出文本文件。",
    "nothing is dropped for {reason}. Reasons are {known}.": "没有名为 {reason} 的丢弃原因。可用的原因：{known}。",
    "this takes the packages {names}:\n  pip install 'npuport[data]'": (
        "需要 {names}：\n  pip install 'npuport[data]'"
    ),
    "steps.language.keep: {language} is none of the languages that can be told: {known}.": (
        "steps.language.keep：{language} 不在可识别的语言之中：{known}。"
    ),
    "steps.perplexity takes the packages torch and transformers: install them.": (
        "steps.perplexity 需要 torch 和 transformers：请安装它们。"
    ),
    "steps.perplexity.model: {path} cannot be loaded: {reason}": "steps.perplexity.model：无法加载 {path}：{reason}",
    "executor.options: {reason}.": "executor.options：{reason}。",
    "the executor slurm takes Slurm's sbatch, which is not on this machine.": (
        "slurm 执行器需要 Slurm 的 sbatch，而本机没有。"
    ),
    "there is no Ray cluster at {address}: {reason}": "{address} 处没有 Ray 集群：{reason}",
    "the executor ray takes the package ray:\n  pip install ray": "ray 执行器需要 ray：\n  pip install ray",
    "the records have no common columns for Parquet ({reason}): write the format jsonl.": (
        "这些记录没有可用于 Parquet 的统一列（{reason}）：请使用 jsonl 格式。"
    ),
    "the stage {stage} failed: {number} of its tasks did not end. See {log}.": (
        "阶段 {stage} 失败：有 {number} 个任务未完成。见 {log}。"
    ),
    "there is no input: name files, folders or patterns.": "没有输入：请给出文件、目录或通配模式。",
    "there is no output: name a new folder.": "没有输出：请给出一个新目录。",
    "there is nothing in {paths}.": "{paths} 中没有内容。",
    "{path} has no field {wanted}: it has {fields}.": "{path} 没有字段 {wanted}，只有 {fields}。",
    "{path} holds an unfinished run with other settings: go on with those, or choose another folder.": (
        "{path} 中有一个设置不同的未完成运行：请用原来的设置继续，或选择其他目录。"
    ),
    "{path} holds an unfinished run, and its input has changed since: choose another folder.": (
        "{path} 中有一个未完成的运行，而其输入已发生变化：请选择其他目录。"
    ),
    "{path} holds no keys: a pipeline file is a YAML mapping.": "{path} 中没有键：流水线文件应为 YAML 映射。",
    "{path} holds no words.": "{path} 中没有词。",
    "{path} is neither JSONL (.jsonl, .jsonl.gz, .jsonl.zst) nor Parquet.": (
        "{path} 既不是 JSONL（.jsonl、.jsonl.gz、.jsonl.zst）也不是 Parquet。"
    ),
    "{path} is no YAML: {reason}.": "{path} 不是 YAML：{reason}。",
    "{path} is no folder that npuport data clean completed.": "{path} 不是 npuport data clean 已完成的目录。",
    "{path} is not UTF-8: {reason}.": "{path} 不是 UTF-8：{reason}。",
    "{path} is there already: choose another name.": "{path} 已存在：请换一个名称。",
    "{path}, line {line} is no JSON object.": "{path} 第 {line} 行不是 JSON 对象。",
    "{path} is one JSON array, and a line for each record is needed: jq -c '.[]' FILE.json > FILE.jsonl": (
        "{path} 是一个 JSON 数组，而这里需要每行一条记录：jq -c '.[]' FILE.json > FILE.jsonl"
    ),
    "{path}: there is no such file, nor a folder with JSONL or Parquet files.": (
        "{path}：没有这样的文件，也没有含 JSONL 或 Parquet 文件的目录。"
    ),
    "{path}: {key} is not known. Known are {known}.": "{path}：未知的键 {key}。可用的键：{known}。",
    "{path}: {key} is not known; did you mean {near}?": "{path}：未知的键 {key}；是否应为 {near}？",
    "{path}: {key} takes a list of texts, not {given}.": "{path}：{key} 应为文本列表，而不是 {given}。",
    "{path}: {key} takes a number, not {given}.": "{path}：{key} 应为数值，而不是 {given}。",
    "{path}: {key} takes a text, not {given}.": "{path}：{key} 应为文本，而不是 {given}。",
    "{path}: {key} takes a whole number, not {given}.": "{path}：{key} 应为整数，而不是 {given}。",
    "{path}: {key} takes keys of its own, not {given}.": "{path}：{key} 应包含下级键，而不是 {given}。",
    "{path}: {key} takes one of {known}, not {given}.": "{path}：{key} 的取值为 {known}，而不是 {given}。",
    "{path}: {key} takes {between}, not {given}.": "{path}：{key} 的取值范围为 {between}，而不是 {given}。",
    "{read} records were read, but {kept} kept and {dropped} dropped: the input changed during the run.": (
        "读取了 {read} 条记录，但保留 {kept} 条、丢弃 {dropped} 条：输入在运行期间发生了变化。"
    ),
}
