"""Search keywords of the built-in tools, in English and Chinese. Models do not get them."""

from collections.abc import Iterable, Mapping

from opposable.tools.function import FunctionTool

KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "echo": ("say", "parrot", "复述", "重复", "原样返回"),
    "calculator": ("compute", "average", "arithmetic", "math", "percent", "median", "计算", "算术", "平均值", "求和", "百分比", "最大值"),
    "time": ("clock", "now", "today", "hour", "weekday", "time zone", "现在几点", "时间", "日期", "今天", "星期", "时区"),
    "file_search": ("grep", "look for", "folder", "directory", "搜索文件", "查找", "包含", "目录", "文件夹"),
    "read_file": ("open", "show", "cat", "content", "打开", "读取文件", "查看内容"),
    "log_transform": ("logs", "exception", "warning", "日志", "错误", "异常", "分析日志"),
    "schema.list_tables": ("schema", "database", "数据库", "所有表", "列出数据表"),
    "schema.list_columns": ("schema", "fields", "database", "字段", "列信息", "表结构"),
    "sql.execute": ("query", "database", "rows", "select", "查询", "执行查询", "数据库"),
    "sql.validate": ("check", "syntax", "query", "验证", "校验", "语法"),
    "sql.validate_columns": ("check", "fields", "query", "验证列名", "校验字段"),
    "sql.auto_fix_columns": ("repair", "correct", "typo", "修复列名", "自动修复"),
    "sql.refine": ("repair", "correct", "optimize", "修正查询", "优化"),
    "python_executor": ("script", "program", "execute", "运行代码", "执行脚本", "编程"),
    "file_processor.convert": ("spreadsheet", "export", "转换格式", "导出"),
    "file_processor.head": ("preview", "beginning", "预览", "前几行"),
    "file_processor.info": ("size", "metadata", "文件信息", "文件大小"),
    "file_processor.read": ("spreadsheet", "open", "读取表格", "打开"),
    "data_analyzer.chart": ("plot", "graph", "diagram", "画图", "图表", "柱状图", "折线图"),
    "data_analyzer.correlate": ("correlation", "relationship", "相关性"),
    "data_analyzer.describe": ("statistics", "summary", "average", "profile", "统计", "数据概况", "平均值"),
    "data_analyzer.group": ("aggregate", "sum", "count", "pivot", "分组", "汇总"),
    "web_scraper": ("fetch", "url", "website", "download", "网页", "抓取", "网址", "正文"),
    "api_caller": ("http", "request", "rest", "接口", "调用", "请求"),
    "browser_navigator.navigate": ("open", "url", "website", "浏览器", "打开网页"),
    "browser_navigator.click": ("button", "press", "点击", "按钮"),
    "browser_navigator.type": ("fill", "form", "enter", "输入", "填写表单"),
    "browser_navigator.read": ("website", "content", "读取页面", "网页内容"),
    "browser_navigator.screenshot": ("image", "capture", "截图", "截屏"),
    "browser_navigator.wait": ("until", "loaded", "等待"),
    "ask_data": ("question", "database", "report", "问数据", "数据库", "查询"),
}  # fmt: skip
"""Other words for what a tool does, by its id."""


def add_search_keywords(tools: Iterable[FunctionTool]) -> list[FunctionTool]:
    """Give the tools their keywords and return them."""
    tools = list(tools)
    for tool in tools:
        tool.keywords = KEYWORDS.get(tool.tool_id, ())
    return tools
