"""Builds the six small Chinese databases of this set in its folder: `python evals/chinese/build.py`."""

import random
import sqlite3
import sys
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import duckdb

Rows = Sequence[Sequence[object]]

RETAIL_SCHEMA = """
CREATE TABLE 门店 (门店编号 INTEGER PRIMARY KEY, 门店名称 TEXT, 城市 TEXT, 开业日期 TEXT);
CREATE TABLE 商品 (商品编号 INTEGER PRIMARY KEY, 商品名称 TEXT, 类别 TEXT, 单价 REAL);
CREATE TABLE 顾客 (顾客编号 INTEGER PRIMARY KEY, 姓名 TEXT, 性别 TEXT, 会员等级 TEXT, 城市 TEXT);
CREATE TABLE 订单 (订单编号 INTEGER PRIMARY KEY, 顾客编号 INTEGER REFERENCES 顾客(顾客编号),
    门店编号 INTEGER REFERENCES 门店(门店编号), 下单日期 TEXT, 状态 TEXT);
CREATE TABLE 订单明细 (明细编号 INTEGER PRIMARY KEY, 订单编号 INTEGER REFERENCES 订单(订单编号),
    商品编号 INTEGER REFERENCES 商品(商品编号), 数量 INTEGER, 成交价 REAL);
"""

HOSPITAL_SCHEMA = """
CREATE TABLE 科室 (科室编号 INTEGER PRIMARY KEY, 科室名称 TEXT, 楼层 INTEGER, 床位数 INTEGER);
CREATE TABLE 医生 (医生编号 INTEGER PRIMARY KEY, 医生姓名 TEXT, 职称 TEXT, 科室编号 INTEGER REFERENCES 科室(科室编号),
    入职年份 INTEGER);
CREATE TABLE 患者 (患者编号 INTEGER PRIMARY KEY, 患者姓名 TEXT, 性别 TEXT, 年龄 INTEGER, 医保类型 TEXT);
CREATE TABLE 挂号 (挂号编号 INTEGER PRIMARY KEY, 患者编号 INTEGER REFERENCES 患者(患者编号),
    医生编号 INTEGER REFERENCES 医生(医生编号), 挂号日期 TEXT, 挂号费 REAL);
CREATE TABLE 药品 (药品编号 INTEGER PRIMARY KEY, 药品名称 TEXT, 剂型 TEXT, 单价 REAL, 库存 INTEGER);
CREATE TABLE 处方 (处方编号 INTEGER PRIMARY KEY, 挂号编号 INTEGER REFERENCES 挂号(挂号编号),
    药品编号 INTEGER REFERENCES 药品(药品编号), 数量 INTEGER);
"""

HR_SCHEMA = """
CREATE TABLE department (dept_id INTEGER PRIMARY KEY, dept_name VARCHAR, city VARCHAR, budget DOUBLE);
CREATE TABLE employee (emp_id INTEGER PRIMARY KEY, emp_name VARCHAR, gender VARCHAR, birth_date DATE, hire_date DATE,
    position VARCHAR, salary DOUBLE, dept_id INTEGER REFERENCES department(dept_id));
CREATE TABLE training (course_id INTEGER PRIMARY KEY, course_name VARCHAR, hours INTEGER);
CREATE TABLE attendance (emp_id INTEGER REFERENCES employee(emp_id), course_id INTEGER REFERENCES training(course_id),
    score DOUBLE, finished_on DATE);
CREATE TABLE leave_request (leave_id INTEGER PRIMARY KEY, emp_id INTEGER REFERENCES employee(emp_id), kind VARCHAR,
    days INTEGER, start_date DATE);
COMMENT ON TABLE department IS '部门';
COMMENT ON COLUMN department.dept_name IS '部门名称';
COMMENT ON COLUMN department.city IS '所在城市';
COMMENT ON COLUMN department.budget IS '年度预算（万元）';
COMMENT ON TABLE employee IS '员工';
COMMENT ON COLUMN employee.emp_id IS '工号';
COMMENT ON COLUMN employee.emp_name IS '员工姓名';
COMMENT ON COLUMN employee.gender IS '性别';
COMMENT ON COLUMN employee.birth_date IS '出生日期';
COMMENT ON COLUMN employee.hire_date IS '入职日期';
COMMENT ON COLUMN employee.position IS '职位';
COMMENT ON COLUMN employee.salary IS '月薪';
COMMENT ON TABLE training IS '培训课程';
COMMENT ON COLUMN training.course_name IS '课程名称';
COMMENT ON COLUMN training.hours IS '课时';
COMMENT ON TABLE attendance IS '员工参加的培训';
COMMENT ON COLUMN attendance.score IS '成绩';
COMMENT ON COLUMN attendance.finished_on IS '结业日期';
COMMENT ON TABLE leave_request IS '请假记录';
COMMENT ON COLUMN leave_request.kind IS '请假类型';
COMMENT ON COLUMN leave_request.days IS '天数';
COMMENT ON COLUMN leave_request.start_date IS '开始日期';
"""

LOGISTICS_SCHEMA = """
CREATE TABLE 仓库 (仓库编号 INTEGER PRIMARY KEY, 仓库名称 VARCHAR, 省份 VARCHAR, 面积 DOUBLE);
CREATE TABLE 司机 (司机编号 INTEGER PRIMARY KEY, 司机姓名 VARCHAR, 驾龄 INTEGER, 所属仓库 INTEGER REFERENCES 仓库(仓库编号));
CREATE TABLE 车辆 (车牌号 VARCHAR PRIMARY KEY, 车型 VARCHAR, 载重 DOUBLE, 购置日期 DATE);
CREATE TABLE 运单 (运单号 INTEGER PRIMARY KEY, 司机编号 INTEGER REFERENCES 司机(司机编号),
    车牌号 VARCHAR REFERENCES 车辆(车牌号), 目的地 VARCHAR, 重量 DOUBLE, 运费 DOUBLE, 发货日期 DATE, 状态 VARCHAR);
"""

LIBRARY_SCHEMA = """
CREATE TABLE 出版社 (出版社编号 INTEGER PRIMARY KEY, 出版社名称 TEXT, 所在地 TEXT);
CREATE TABLE 图书 (图书编号 INTEGER PRIMARY KEY, 书名 TEXT, 作者 TEXT, 分类 TEXT, 定价 REAL, 出版年份 INTEGER,
    出版社编号 INTEGER REFERENCES 出版社(出版社编号), 馆藏册数 INTEGER);
CREATE TABLE 读者 (读者编号 INTEGER PRIMARY KEY, 读者姓名 TEXT, 学院 TEXT, 身份 TEXT);
CREATE TABLE 借阅 (借阅编号 INTEGER PRIMARY KEY, 图书编号 INTEGER REFERENCES 图书(图书编号),
    读者编号 INTEGER REFERENCES 读者(读者编号), 借出日期 TEXT, 归还日期 TEXT);
"""

TELECOM_SCHEMA = """
CREATE TABLE plan (plan_id INTEGER PRIMARY KEY, plan_name VARCHAR, monthly_fee DOUBLE, data_gb INTEGER);
CREATE TABLE subscriber (sub_id INTEGER PRIMARY KEY, sub_name VARCHAR, province VARCHAR, plan_id INTEGER REFERENCES plan(plan_id),
    join_date DATE, state VARCHAR);
CREATE TABLE bill (bill_id INTEGER PRIMARY KEY, sub_id INTEGER REFERENCES subscriber(sub_id), bill_month VARCHAR, amount DOUBLE,
    paid BOOLEAN);
CREATE TABLE complaint (complaint_id INTEGER PRIMARY KEY, sub_id INTEGER REFERENCES subscriber(sub_id), topic VARCHAR,
    filed_on DATE, solved BOOLEAN);
COMMENT ON TABLE plan IS '套餐';
COMMENT ON COLUMN plan.plan_name IS '套餐名称';
COMMENT ON COLUMN plan.monthly_fee IS '月费';
COMMENT ON COLUMN plan.data_gb IS '流量（GB）';
COMMENT ON TABLE subscriber IS '用户';
COMMENT ON COLUMN subscriber.sub_name IS '用户姓名';
COMMENT ON COLUMN subscriber.province IS '省份';
COMMENT ON COLUMN subscriber.join_date IS '入网日期';
COMMENT ON COLUMN subscriber.state IS '状态';
COMMENT ON TABLE bill IS '账单';
COMMENT ON COLUMN bill.bill_month IS '账期';
COMMENT ON COLUMN bill.amount IS '账单金额';
COMMENT ON COLUMN bill.paid IS '是否已缴';
COMMENT ON TABLE complaint IS '投诉';
COMMENT ON COLUMN complaint.topic IS '投诉主题';
COMMENT ON COLUMN complaint.filed_on IS '投诉日期';
COMMENT ON COLUMN complaint.solved IS '是否已解决';
"""

SEEDS = {"retail": 4, "hospital": 3, "hr": 31, "logistics": 10, "library": 6, "telecom": 4}
"""Random seeds for which no question of the set has a tie for the first place."""

SURNAMES = "王李张刘陈杨赵黄周吴徐孙马朱胡林郭何高罗"
GIVEN_NAMES = [
    "伟",
    "芳",
    "娜",
    "敏",
    "静",
    "强",
    "磊",
    "洋",
    "艳",
    "勇",
    "军",
    "杰",
    "娟",
    "涛",
    "明",
    "超",
    "秀英",
    "霞",
    "平",
    "刚",
    "桂英",
    "建华",
    "文",
    "玲",
    "志强",
    "海燕",
    "晓明",
    "丽",
    "鹏",
    "雪",
]


def draw_names(rng: random.Random, count: int) -> list[str]:
    """Draw distinct full names."""
    full_names = [surname + given for surname in SURNAMES for given in GIVEN_NAMES]
    return rng.sample(full_names, count)


def draw_day(rng: random.Random, first: date, last: date) -> str:
    """Draw a day between two days, as 2024-05-01."""
    return (first + timedelta(rng.randint(0, (last - first).days))).isoformat()


def make_retail_rows(rng: random.Random) -> dict[str, Rows]:
    """Make shops, goods, customers and orders; two customers have no orders, one article was never sold."""
    cities = ("北京", "上海", "广州", "成都", "杭州")
    shops = ["朝阳店", "浦东店", "天河店", "武侯店", "西湖店", "海淀店", "徐汇店"]
    goods = [
        ("苹果", "水果", 6.5), ("香蕉", "水果", 4.8), ("草莓", "水果", 19.9), ("牛奶", "乳制品", 12.0), ("酸奶", "乳制品", 8.5),
        ("面包", "烘焙", 9.9), ("蛋糕", "烘焙", 68.0), ("矿泉水", "饮料", 2.0), ("可乐", "饮料", 3.5), ("绿茶", "饮料", 4.0),
        ("大米", "粮油", 45.0), ("花生油", "粮油", 89.0),
    ]  # fmt: skip
    people = draw_names(rng, 30)
    levels = ("普通", "白银", "黄金", "钻石")
    placed = (date(2023, 1, 1), date(2024, 12, 31))
    orders = [
        (
            n,
            rng.randint(1, 28),
            rng.randint(1, 7),
            draw_day(rng, *placed),
            rng.choice(("已完成", "已完成", "已取消", "配送中")),
        )
        for n in range(1, 121)
    ]
    lines: list[Sequence[object]] = []
    for order in range(1, 121):
        for item in rng.sample(range(1, 12), rng.randint(1, 3)):
            price = goods[item - 1][2] * rng.choice((1.0, 1.0, 0.9))
            lines.append((len(lines) + 1, order, item, rng.randint(1, 6), round(price, 2)))
    opened = (date(2015, 1, 1), date(2022, 12, 31))
    return {
        "门店": [(n, shop, cities[(n - 1) % 5], draw_day(rng, *opened)) for n, shop in enumerate(shops, 1)],
        "商品": [(n, *item) for n, item in enumerate(goods, 1)],
        "顾客": [
            (n, person, rng.choice("男女"), rng.choice(levels), rng.choice(cities))
            for n, person in enumerate(people, 1)
        ],
        "订单": orders,
        "订单明细": lines,
    }


def make_hospital_rows(rng: random.Random) -> dict[str, Rows]:
    """Make departments, doctors, patients, visits and prescriptions; three patients have no visit."""
    wards = [("内科", 3, 60), ("外科", 4, 55), ("儿科", 2, 40), ("妇产科", 5, 45), ("眼科", 6, 20), ("皮肤科", 6, 15)]
    doctors, patients = draw_names(rng, 18), draw_names(rng, 40)
    ranks = ("主任医师", "副主任医师", "主治医师", "住院医师")
    medicines = [
        ("阿莫西林", "胶囊", 15.5, 300), ("布洛芬", "片剂", 12.0, 450), ("感冒灵", "颗粒", 18.0, 220), ("头孢克肟", "胶囊", 32.5, 150),
        ("维生素C", "片剂", 6.0, 800), ("氯雷他定", "片剂", 21.0, 90), ("止咳糖浆", "口服液", 25.8, 60), ("红霉素", "软膏", 4.5, 130),
        ("葡萄糖", "注射液", 8.8, 500), ("胰岛素", "注射液", 76.0, 40),
    ]  # fmt: skip
    visits = [
        (
            n,
            rng.randint(1, 37),
            rng.randint(1, 17),
            draw_day(rng, date(2023, 3, 1), date(2024, 10, 31)),
            rng.choice((20.0, 30.0, 50.0)),
        )
        for n in range(1, 141)
    ]
    given: list[Sequence[object]] = []
    for visit in range(1, 141):
        for item in rng.sample(range(1, 10), rng.randint(0, 2)):
            given.append((len(given) + 1, visit, item, rng.randint(1, 4)))
    insured = ("职工医保", "居民医保", "自费")
    return {
        "科室": [(n, *ward) for n, ward in enumerate(wards, 1)],
        "医生": [
            (n, who, rng.choice(ranks), rng.randint(1, 6), rng.randint(1998, 2022)) for n, who in enumerate(doctors, 1)
        ],
        "患者": [
            (n, who, rng.choice("男女"), rng.randint(1, 88), rng.choice(insured)) for n, who in enumerate(patients, 1)
        ],
        "挂号": visits,
        "药品": [(n, *one) for n, one in enumerate(medicines, 1)],
        "处方": given,
    }


def make_hr_rows(rng: random.Random) -> dict[str, Rows]:
    """Make the departments, employees, trainings and leave of a firm; one department has no employees."""
    departments = [
        ("研发部", "深圳", 1200.0), ("市场部", "上海", 650.0), ("财务部", "北京", 300.0), ("人力资源部", "北京", 260.0),
        ("客服部", "成都", 410.0), ("法务部", "北京", 150.0),
    ]  # fmt: skip
    positions = ("工程师", "高级工程师", "专员", "主管", "经理")
    people = draw_names(rng, 45)
    courses = [
        ("新员工入职", 8),
        ("信息安全", 4),
        ("沟通技巧", 6),
        ("项目管理", 16),
        ("数据分析", 24),
        ("英语口语", 30),
    ]
    staff = [
        (n, who, rng.choice("男女"), draw_day(rng, date(1972, 1, 1), date(2001, 12, 31)), draw_day(rng, date(2012, 1, 1), date(2024, 6, 30)),
         rng.choice(positions), float(rng.randrange(6000, 40000, 500)), rng.randint(1, 5))
        for n, who in enumerate(people, 1)
    ]  # fmt: skip
    taken = rng.sample([(who, course) for who in range(1, 42) for course in range(1, 6)], 90)
    finished = (date(2023, 1, 1), date(2024, 12, 31))
    return {
        "department": [(n, *one) for n, one in enumerate(departments, 1)],
        "employee": staff,
        "training": [(n, *one) for n, one in enumerate(courses, 1)],
        "attendance": [
            (who, course, float(rng.randint(45, 100)), draw_day(rng, *finished)) for who, course in sorted(taken)
        ],
        "leave_request": [
            (
                n,
                rng.randint(1, 40),
                rng.choice(("年假", "病假", "事假", "产假")),
                rng.randint(1, 10),
                draw_day(rng, *finished),
            )
            for n in range(1, 81)
        ],
    }


def make_logistics_rows(rng: random.Random) -> dict[str, Rows]:
    """Make warehouses, drivers, lorries and waybills; one lorry was never used."""
    warehouses = [
        ("华北一仓", "河北", 8200.0),
        ("华东中心仓", "浙江", 15600.0),
        ("华南二仓", "广东", 9700.0),
        ("西南仓", "四川", 5400.0),
    ]
    people = draw_names(rng, 14)
    kinds = ("厢式货车", "冷藏车", "平板车")
    plates = [f"{place}{rng.choice('ABCD')}{rng.randint(10000, 99999)}" for place in "冀浙粤川冀浙粤川浙粤"]
    towns = ("石家庄", "杭州", "深圳", "成都", "武汉", "西安", "郑州")
    return {
        "仓库": [(n, *warehouse) for n, warehouse in enumerate(warehouses, 1)],
        "司机": [(n, who, rng.randint(1, 25), rng.randint(1, 4)) for n, who in enumerate(people, 1)],
        "车辆": [
            (plate, rng.choice(kinds), rng.choice((5.0, 8.0, 12.5, 20.0)), draw_day(rng, date(2016, 1, 1), date(2023, 12, 31)))
            for plate in plates
        ],
        "运单": [
            (1000 + n, rng.randint(1, 13), rng.choice(plates[:-1]), rng.choice(towns), round(rng.uniform(0.5, 12.0), 1),
             float(rng.randrange(200, 3000, 10)), draw_day(rng, date(2024, 1, 1), date(2024, 12, 31)),
             rng.choice(("已签收", "已签收", "运输中", "已退回")))
            for n in range(1, 131)
        ],
    }  # fmt: skip


def make_library_rows(rng: random.Random) -> dict[str, Rows]:
    """Make publishers, books, readers and loans; some are open, one publisher has no books."""
    publishers = [
        ("商务印书馆", "北京"),
        ("三联书店", "北京"),
        ("译林出版社", "南京"),
        ("上海译文出版社", "上海"),
        ("岳麓书社", "长沙"),
    ]
    titles = [
        ("红楼梦", "曹雪芹", "文学"), ("围城", "钱锺书", "文学"), ("活着", "余华", "文学"), ("三体", "刘慈欣", "科幻"),
        ("球状闪电", "刘慈欣", "科幻"), ("时间简史", "霍金", "科学"), ("物种起源", "达尔文", "科学"), ("国富论", "亚当斯密", "经济"),
        ("资本论", "马克思", "经济"), ("论语译注", "杨伯峻", "哲学"), ("理想国", "柏拉图", "哲学"), ("史记", "司马迁", "历史"),
        ("万历十五年", "黄仁宇", "历史"), ("全球通史", "斯塔夫里阿诺斯", "历史"), ("边城", "沈从文", "文学"), ("平凡的世界", "路遥", "文学"),
    ]  # fmt: skip
    people = draw_names(rng, 32)
    schools = ("文学院", "理学院", "工学院", "经济学院", "医学院")
    loans: list[Sequence[object]] = []
    for number in range(1, 151):
        taken = date(2023, 2, 1) + timedelta(rng.randint(0, 660))
        back = (taken + timedelta(rng.randint(3, 60))).isoformat() if rng.random() < 0.85 else None
        loans.append((number, rng.randint(1, 15), rng.randint(1, 30), taken.isoformat(), back))
    prices, copies = rng.sample(range(18, 120), 16), rng.sample(range(1, 30), 16)
    return {
        "出版社": [(n, *publisher) for n, publisher in enumerate(publishers, 1)],
        "图书": [
            (n, *title, float(price), rng.randint(1985, 2023), rng.randint(1, 4), copies[n - 1])
            for n, (title, price) in enumerate(zip(titles, prices, strict=True), 1)
        ],
        "读者": [
            (n, who, rng.choice(schools), rng.choice(("本科生", "研究生", "教师"))) for n, who in enumerate(people, 1)
        ],
        "借阅": loans,
    }


def make_telecom_rows(rng: random.Random) -> dict[str, Rows]:
    """Make plans, subscribers, bills and complaints; one plan has no subscriber."""
    plans = [
        ("畅享套餐", 59.0, 20),
        ("无忧套餐", 99.0, 60),
        ("尊享套餐", 199.0, 150),
        ("校园套餐", 29.0, 30),
        ("银发套餐", 19.0, 5),
    ]
    people = draw_names(rng, 40)
    provinces = ("浙江", "江苏", "山东", "四川", "福建")
    months = ("2024-01", "2024-02", "2024-03", "2024-04")
    bills = [(who, month) for who in range(1, 39) for month in months]
    return {
        "plan": [(n, *plan) for n, plan in enumerate(plans, 1)],
        "subscriber": [
            (n, who, rng.choice(provinces), rng.randint(1, 4), draw_day(rng, date(2018, 1, 1), date(2023, 12, 31)),
             rng.choice(("正常", "正常", "停机", "销户")))
            for n, who in enumerate(people, 1)
        ],
        "bill": [
            (n, who, month, round(rng.uniform(19, 260), 2), rng.random() < 0.8) for n, (who, month) in enumerate(bills, 1)
        ],
        "complaint": [
            (n, rng.randint(1, 40), rng.choice(("信号差", "乱扣费", "网速慢", "客服态度")), draw_day(rng, date(2023, 6, 1), date(2024, 4, 30)),
             rng.random() < 0.6)
            for n in range(1, 61)
        ],
    }  # fmt: skip


def build_databases(folder: Path) -> None:
    """Build the databases in `folder`, with the same rows each time; replace existing ones."""
    for name, tables, schema in (
        ("retail", make_retail_rows, RETAIL_SCHEMA),
        ("hospital", make_hospital_rows, HOSPITAL_SCHEMA),
        ("hr", make_hr_rows, HR_SCHEMA),
        ("logistics", make_logistics_rows, LOGISTICS_SCHEMA),
        ("library", make_library_rows, LIBRARY_SCHEMA),
        ("telecom", make_telecom_rows, TELECOM_SCHEMA),
    ):
        engine = "duckdb" if name in ("hr", "logistics", "telecom") else "sqlite"
        path = folder / f"{name}.{engine}"
        path.unlink(missing_ok=True)
        connection = duckdb.connect(path) if engine == "duckdb" else sqlite3.connect(path)
        for statement in schema.split(";\n"):
            if statement.strip():
                connection.execute(statement)
        for table, rows in tables(random.Random(SEEDS[name])).items():  # noqa: S311 - the same rows each time
            placeholders = ", ".join("?" * len(rows[0]))
            connection.executemany(f'INSERT INTO "{table}" VALUES ({placeholders})', rows)  # noqa: S608 - constant names
        connection.commit()
        connection.close()


if __name__ == "__main__":
    build_databases(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
