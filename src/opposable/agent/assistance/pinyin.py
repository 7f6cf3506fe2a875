"""Pinyin of Chinese names: 张伟 is zhang wei."""

import re
from bisect import bisect_right

_FIRST_CHARACTERS = (
    "a啊ai埃an鞍ang肮ao凹ba芭bai白ban斑bang邦bao苞bei杯ben奔beng崩bi逼bian鞭biao标bie鳖bin彬bing兵bo玻bu捕ca擦cai猜c"
    "an餐cang苍cao操ce厕ceng层cha插chai拆chan搀chang昌chao超che车chen郴cheng撑chi吃chong充chou抽chu初chuai揣chu"
    "an川chuang疮chui吹chun春chuo戳ci疵cong聪cou凑cu粗cuan蹿cui摧cun村cuo磋da搭dai呆dan耽dang当dao刀de德deng蹬di堤"
    "dian颠diao碉die跌ding丁diu丢dong东dou兜du督duan端dui堆dun墩duo掇e蛾en恩er而fa发fan藩fang坊fei菲fen芬feng丰fo佛"
    "fou否fu夫ga噶gai该gan干gang冈gao篙ge哥gei给gen根geng耕gong工gou钩gu辜gua刮guai乖guan棺guang光gui瑰gun辊guo锅h"
    "a哈hai骸han酣hang夯hao壕he呵hei嘿hen痕heng哼hong轰hou喉hu呼hua花huai槐huan欢huang荒hui灰hun荤huo豁ji击jia嘉ji"
    "an歼jiang僵jiao蕉jie揭jin巾jing荆jiong炯jiu揪ju鞠juan捐jue撅jun均ka喀kai开kan刊kang康kao考ke坷ken肯keng坑kon"
    "g空kou抠ku枯kua夸kuai块kuan宽kuang匡kui亏kun坤kuo括la垃lai莱lan蓝lang琅lao捞le勒lei雷leng棱li厘lia俩lian联lia"
    "ng粮liao撩lie列lin琳ling玲liu溜long龙lou楼lu芦lv驴luan峦lve掠lun抡luo萝ma妈mai埋man瞒mang芒mao猫me么mei玫men门"
    "meng萌mi眯mian棉miao苗mie蔑min民ming明miu谬mo摸mou谋mu拇na拿nai氖nan南nang囊nao挠ne呢nei馁nen嫩neng能ni妮nian"
    "蔫niang娘niao鸟nie捏nin您ning柠niu牛nong脓nu奴nv女nuan暖nve虐nuo挪o哦ou欧pa啪pai拍pan攀pang乓pao抛pei呸pen喷pe"
    "ng砰pi坯pian篇piao飘pie撇pin拼ping乒po坡pu扑qi期qia掐qian牵qiang枪qiao橇qie切qin钦qing青qiong琼qiu秋qu趋quan"
    "圈que缺qun裙ran然rang瓤rao饶re惹ren壬reng扔ri日rong戎rou揉ru茹ruan软rui蕊run闰ruo若sa撒sai腮san三sang桑sao搔se"
    "瑟sen森seng僧sha莎shai筛shan珊shang墒shao梢she奢shen砷sheng声shi师shou收shu蔬shua刷shuai摔shuan栓shuang霜s"
    "hui谁shun吮shuo说si斯song松sou搜su苏suan酸sui虽sun孙suo蓑ta塌tai胎tan坍tang汤tao掏te特teng藤ti梯tian天tiao挑t"
    "ie贴ting厅tong通tou偷tu凸tuan湍tui推tun吞tuo拖wa挖wai歪wan豌wang汪wei威wen瘟weng嗡wo挝wu巫xi昔xia瞎xian掀xian"
    "g相xiao萧xie楔xin薪xing星xiong兄xiu休xu墟xuan轩xue靴xun勋ya压yan焉yang殃yao邀ye椰yi一yin茵ying英yo哟yong拥you"
    "幽yu迂yuan鸳yue曰yun耘za匝zai栽zan咱zang赃zao遭ze责zei贼zen怎zeng增zha扎zhai摘zhan瞻zhang樟zhao招zhe遮zhen珍z"
    "heng蒸zhi芝zhong中zhou舟zhu珠zhua抓zhuai拽zhuan专zhuang桩zhui椎zhun谆zhuo捉zi兹zong鬃zou邹zu租zuan钻zui嘴z"
    "un尊zuo昨"
)
"""Each syllable with its first character in GB 2312, in the order of its 3,755 common characters."""

_SYLLABLE_STARTS: list[tuple[bytes, str]] = [
    (first.encode("gb2312"), syllable) for syllable, first in re.findall(r"([a-z]+)(.)", _FIRST_CHARACTERS)
]
_COMMON_CHARACTER_RANGE = (b"\xb0\xa1", b"\xd7\xf9")
_CHINESE_NAME_PATTERN = re.compile(r"[\u4e00-\u9fff]{2,4}")
_LATIN_WORD_PATTERN = re.compile(r"[a-z]+")


def is_pinyin_of(latin: str, chinese: str) -> bool:
    """Return whether Latin words spell a Chinese name of two to four characters."""
    if not _CHINESE_NAME_PATTERN.fullmatch(chinese):
        return False
    syllables = [_get_syllable(character) for character in chinese]
    spelt = "".join(_LATIN_WORD_PATTERN.findall(latin.lower().replace("ü", "v")))
    return all(syllables) and spelt in ("".join(syllables), "".join((*syllables[1:], syllables[0])))


def _get_syllable(character: str) -> str:
    """Return the syllable of a common character, "" of any other."""
    try:
        code = character.encode("gb2312")
    except UnicodeEncodeError:
        return ""
    if not _COMMON_CHARACTER_RANGE[0] <= code <= _COMMON_CHARACTER_RANGE[1]:
        return ""
    return _SYLLABLE_STARTS[bisect_right(_SYLLABLE_STARTS, code, key=lambda one: one[0]) - 1][1]
