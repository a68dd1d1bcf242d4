"""Chinese sentences of `npuport data`."""

from __future__ import annotations

DATA_SENTENCES = {
    "{path}: {records} with {tokens} tokens": "{path}：{records}，{tokens} 个 token",
    "{number} record": "{number} 条记录",
    "{number} records": "{number} 条记录",
    "{number} sample": "{number} 个样本",
    "{number} samples": "{number} 个样本",
    "{samples} of {length} tokens, filled to {share}": "{samples}，每个 {length} 个 token，填充率 {share}",
    "in the loss: {number} tokens": "计入 loss：{number} 个 token",
    "tokens of a record: {lengths}": "每条记录的 token 数：{lengths}",
    "cut off: {number} tokens, which are in no sample": "截去：{number} 个 token，不在任何样本中",
    "not in the loss, for nothing stands before them that could predict them: {number} tokens of answers": (
        "不计入 loss（前面没有可用于预测的内容）：回答中的 {number} 个 token"
    ),
    "longer than a sample: {places}": "超过样本长度：{places}",
    "empty, in no sample: {places}": "为空，不在任何样本中：{places}",
    "no answer in the loss: {places}": "没有计入 loss 的回答：{places}",
    "… and {number} more (statistics.json)": "……另有 {number} 条（见 statistics.json）",
    "{path}, line {line} is not a JSON object: {reason}. Each line is one record.": (
        "{path} 第 {line} 行不是 JSON 对象：{reason}。每行应为一条记录。"
    ),
    "no tokenizer can be loaded from {source}: {reason}": ("无法从 {source} 加载 tokenizer：{reason}"),
    "the tokenizer {source} says of no token where in the text it stands: one with a tokenizer.json does.": (
        "tokenizer {source} 不能给出 token 在文本中的位置；请使用带 tokenizer.json 的版本。"
    ),
    "{place} has no {field}: it has {fields}.": ("{place} 没有字段 {field}，只有 {fields}。"),
    "{place} cannot be packed: {reason}.": ("{place} 无法打包：{reason}。"),
    "{place}: {labels} has {given} entries for {tokens} tokens.": (
        "{place}：{labels} 有 {given} 项，但有 {tokens} 个 token。"
    ),
    "{place}: {field} is no list of ids.": ("{place}：{field} 不是 id 列表。"),
    "the records hold text: name its tokenizer with --tokenizer.": ("记录中是文本：请用 --tokenizer 指定 tokenizer。"),
    "files of the format pt take the package torch: install it.": "pt 格式的文件需要 torch：请安装它。",
    "{path} holds no samples that npuport data pack wrote.": "{path} 中没有 npuport data pack 写出的样本。",
    "sample {number}": "样本 {number}",
    "padding": "填充",
    "sequence {number}": "序列 {number}",
    "sequence {number}, record {record}": "序列 {number}，记录 {record}",
    "tokens {begin}-{end}": "token {begin}-{end}",
    "positions {first}-{last}": "位置 {first}-{last}",
    "{number} in the loss": "{number} 个计入 loss",
    "In the loss: [like this].": "计入 loss 的部分：[如此标记]。",
    "there is no sample {number}: the last is {last}.": "没有样本 {number}：最后一个是 {last}。",
    "{place} holds something that is no token id: ids are whole numbers from 0 to 2147483647.": (
        "{place} 含有不是 token id 的内容：id 应为 0 到 2147483647 的整数。"
    ),
    "{place}: {labels} is neither negative nor the token's own id somewhere.": (
        "{place}：{labels} 中有的值既不为负，也不等于该 token 的 id。"
    ),
    "{path} is there already: choose another folder.": ("{path} 已存在：请选择其他目录。"),
    "there is nothing to pack in {paths}.": ("{paths} 中没有可打包的内容。"),
    "npuport data takes the packages numpy and pyarrow:\n  pip install 'npuport[data]'": (
        "npuport data 需要 numpy 和 pyarrow：\n  pip install 'npuport[data]'"
    ),
    "{option} takes {known}, not {given}.": ("{option} 的取值为 {known}，而不是 {given}。"),
    "what ends a document? Give its id with --end-of-document, or a tokenizer that has one.": (
        "文档以哪个 token 结尾？请用 --end-of-document 给出其 id，或使用定义了结尾 token 的 tokenizer。"
    ),
    "what is an answer? Give a --tokenizer with a chat template, tokens of each --role, or ids with --labels.": (
        "哪些部分是回答？请给出带 chat template 的 --tokenizer、各 --role 的 token，或带 --labels 的 id。"
    ),
    "--role takes ROLE=TOKENS, such as user=<|user|> or user=5,6, not {given}.": (
        "--role 的格式为 ROLE=TOKENS，例如 user=<|user|> 或 user=5,6，而不是 {given}。"
    ),
    "{tokens} is text: name its tokenizer with --tokenizer, or give ids as 1,2,3.": (
        "{tokens} 是文本：请用 --tokenizer 指定 tokenizer，或以 1,2,3 的形式给出 id。"
    ),
}
