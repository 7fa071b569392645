package words

// chineseWords has the words of the API.
var chineseWords = map[string]string{
	"enabled": "已启用", "disabled": "已停用", "finished": "已结束",
	"waiting": "等待中", "running": "运行中", "retrying": "重试中", "succeeded": "成功", "failed": "失败", "dead": "已放弃",
	"skipped": "已跳过", "missed": "已错过", "cancelled": "已取消", "unknown": "未知",
	"schedule": "计划", "manual": "手动", "redrive": "手动重试", "catch_up": "补发",
	"overlap": "重叠：上次尚未结束", "misfire": "错过触发", "misfire_window": "超出错过触发的时限", "replaced": "已替换", "deleted": "已删除",
	"overlap_queue_full": "排队已满", "max_attempts": "尝试次数用尽", "max_age": "超过放弃期限", "stale": "超过最迟开始时间", "rejected": "目标拒绝",
	"clock_reset": "时钟重置", "may_have_been_sent": "可能已发送", "crashed": "进程崩溃",
	"timeout": "超时", "refused": "连接被拒绝", "dns": "域名解析失败", "tls": "TLS 错误", "egress_denied": "地址被禁止",
	"stale_connection": "连接失效", "reset": "连接中断", "protocol": "协议错误", "too_large": "过大", "status": "状态码", "secret_missing": "缺少密钥",
	"journal": "预写日志", "panic": "内部错误",
	"enable": "启用", "disable": "停用", "run": "立即运行", "delete": "删除", "retry": "重试", "dismiss": "忽略",
	"read": "只读", "write": "读写", "admin": "管理员", "cold": "冷层", "warm": "温层", "cold_tier": "冷层存储", "warm_tier": "温层存储",
	"cron": "cron", "every": "间隔", "at": "时刻", "delay": "延时",
	"body": "JSON", "body_text": "文本", "body_base64": "Base64",
	"latest": "最近一次", "skip": "跳过", "all": "全部", "allow": "允许", "queue": "排队",
	"at_least_once": "至少一次", "at_most_once": "至多一次",
	"ms": "毫秒", "s": "秒", "min": "分钟", "h": "小时", "d": "天",
	"serving": "服务中", "draining": "正在移交", "unfit": "不适合服务", "drain": "移交分片", "end": "结束进程",
	"closed": "闭合", "open": "断开", "trying": "试探中", "pause": "暂停", "quota": "配额", "flow": "流控", "cooldown": "冷却", "breaker": "熔断",
	"critical": "严重", "warning": "警告", "recovered": "已恢复", "gone": "定时器已删除", "late": "晚触发", "backlog": "积压", "tier": "存储不可用",
	"paused": "已暂停", "clock": "时钟", "disk": "磁盘", "memory": "内存", "early": "提前触发", "audit": "内存核对", "target": "目标", "timer": "定时器", "app": "应用", "rule": "规则",
	"delivered": "已送达", "given_up": "已放弃", "incident.opened": "事件开始", "incident.repeated": "事件重复通知", "incident.recovered": "事件结束", "digest": "摘要", "test": "测试",
	"webhook": "Webhook", "slack": "Slack", "wecom": "企业微信", "dingtalk": "钉钉", "feishu": "飞书", "email": "邮件",
	"POST": "POST", "GET": "GET", "PUT": "PUT", "PATCH": "PATCH", "DELETE": "DELETE",
}
