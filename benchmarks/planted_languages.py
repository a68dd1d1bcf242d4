"""Sentences in many languages from lists of words: grammar enough to be told apart, and never the same twice."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class _Language:
    """Words of each kind, several joined by "_"; in ``templates`` A, N, V, C and T alone stand for one of each."""

    adjectives: str
    nouns: str
    verbs: str
    connectives: str
    times: str
    templates: tuple[str, ...]


_WORDS: dict[str, _Language] = {
    "en": _Language(
        adjectives=(
            "quiet old narrow bright careful distant early broken gentle heavy hidden honest large "
            "modern patient simple strange warm wooden young curious empty famous frozen golden "
            "hungry lazy noisy proud silver"
        ),
        nouns=(
            "river teacher window garden letter market village engine mountain doctor paper station "
            "summer kitchen harbour library bridge farmer island morning painter question shadow song "
            "ticket uncle valley winter worker yard journey neighbour orchard picture promise rain "
            "road sister story train"
        ),
        verbs=(
            "watched carried remembered followed crossed painted repaired described visited answered "
            "counted discovered finished ignored measured opened promised questioned reached shared "
            "studied translated understood waited wondered"
        ),
        connectives="when because although while after before unless wherever as_soon_as even_if",
        times=(
            "yesterday at_noon in_spring once_more without_a_word for_years in_silence before_dawn "
            "on_Sunday quite_often near_the_sea at_last"
        ),
        templates=(
            "The A N V a A N T.",
            "C the A N V her N, his A N V it T.",
            "T a N of the A N V every N C the N V them.",
            "There was no A N C its N V the A N.",
            "He said that T this A N and a N V our A N.",
            "She V the N C T an A N V him with the A N.",
        ),
    ),
    "de": _Language(
        adjectives=(
            "alten neuen kleinen großen schönen stillen kühlen müden fröhlichen hölzernen ehrlichen "
            "jungen späten frühen dunklen hellen süßen grünen fremden klugen leeren schweren leichten "
            "weißen"
        ),
        nouns=(
            "Fluss Lehrer Garten Brief Markt Berg Arzt Bahnhof Sommer Küche Hafen Brücke Bauer Insel "
            "Maler Frage Schatten Onkel Winter Straße Nachbar Reise Regen Schwester Geschichte Zug "
            "Bäcker Tür Schlüssel Vögel Müller Händler Wälder Städte Gärtner Mütter"
        ),
        verbs=(
            "beobachtete erklärte öffnete überquerte erzählte hörte führte kaufte malte suchte "
            "verließ erreichte zählte grüßte störte verstand prüfte wählte fühlte trägt"
        ),
        connectives="als weil obwohl während nachdem bevor sobald solange damit falls",
        times=(
            "gestern am_Mittag im_Frühling noch_einmal ohne_ein_Wort seit_Jahren vor_Sonnenaufgang "
            "am_Sonntag ziemlich_oft nahe_dem_Meer zuletzt über_Nacht"
        ),
        templates=(
            "Der A N V T den A N.",
            "C die A N ihn V, war sein A N T fort.",
            "T V ein N des A N jeden N, C der N sie V.",
            "Es gab keine A N, C ihr N den A N V.",
            "Er sagte, T habe dieser A N und eine N unseren A N gefunden.",
            "Sie V das N, C T ein A N ihn mit der N V.",
        ),
    ),
    "fr": _Language(
        adjectives=(
            "vieux petit léger étroit élégant discret fidèle âgé étonné privé gelé célèbre entière "
            "dernière première légère fatigué pressé doré oublié caché honnête étrange tranquille"
        ),
        nouns=(
            "rivière élève fenêtre jardin lettre marché forêt médecin gare été cuisine pêcheur "
            "bibliothèque fermière île matinée peintre réponse côté frère vallée hiver métier année "
            "théâtre château école élection société idée théorie pièce musée café député"
        ),
        verbs=(
            "regardait préparait répétait décidait traversait espérait achetait révélait rencontrait "
            "élevait gérait comprenait répondait étudiait cherchait"
        ),
        connectives="quand parce_que tandis_que après_que avant_que dès_que lorsque puisque où alors_que",
        times=(
            "hier à_midi au_printemps encore_une_fois sans_un_mot depuis_des_années avant_l’aube "
            "dimanche assez_souvent près_de_la_mer enfin très_tôt"
        ),
        templates=(
            "Le N A V T une N A.",
            "C la N A V sa N, son N A le V T.",
            "T un N de la N A V chaque N C le N les V.",
            "Pas de N A C sa N V le N A.",
            "Elle V cette N C T un N A V avec le N A.",
        ),
    ),
    "es": _Language(
        adjectives=(
            "viejo pequeño tímido rápido último único público antiguo dulce extraño cálido frío joven "
            "lejano débil fácil difícil útil trágico mágico"
        ),
        nouns=(
            "río maestro jardín corazón camión montaña médico estación niño cocina avión biblioteca "
            "puente compañía isla mañana pintor canción sombra tío valle invierno señor año ciudad "
            "región página lección árbol lápiz"
        ),
        verbs=(
            "miraba preguntó cruzó pintó reparó describió visitó contestó contó descubrió terminó "
            "midió abrió llegó compartió estudió tradujo"
        ),
        connectives="cuando porque aunque mientras después_que antes_que donde siempre_que apenas si",
        times=(
            "ayer al_mediodía en_primavera otra_vez sin_decir_nada desde_hace_años antes_del_alba "
            "el_domingo muy_a_menudo cerca_del_mar por_fin también"
        ),
        templates=(
            "El N A V T una N A.",
            "C la N A V su N, aquel N A lo V T.",
            "T un N de la N A V cada N C el N los V.",
            "No había ninguna N A C su N V el N A.",
            "Ella V esta N C T un N A V con el N A.",
        ),
    ),
    "ru": _Language(
        adjectives=(
            "старый новый тихий большой маленький добрый холодный тёплый деревянный честный молодой "
            "поздний светлый тёмный далёкий простой странный тяжёлый лёгкий зелёный"
        ),
        nouns=(
            "река учитель окно сад письмо рынок деревня гора врач станция лето кухня гавань "
            "библиотека мост остров утро художник вопрос тень песня билет дядя долина зима рабочий "
            "двор сосед дождь дорога сестра история поезд"
        ),
        verbs=(
            "видел слушал помнил рисовал чинил описал посетил ответил считал открыл закончил измерил обещал понял ждал"
        ),
        connectives="когда потому_что хотя пока после_того_как прежде_чем если так_как где чтобы",
        times=(
            "вчера в_полдень весной ещё_раз без_слов много_лет до_рассвета в_воскресенье "
            "довольно_часто у_моря наконец ночью"
        ),
        templates=(
            "A N T V другой A N.",
            "C A N V его N, этот A N T не V.",
            "T один N и A N V каждый N, C N их V.",
            "Там не было A N, C её N V A N.",
            "Он сказал, что T A N и её N V наш A N.",
            "Она V этот N, C T A N V его у A N.",
        ),
    ),
    "zh": _Language(
        adjectives=(
            "古老的 安静的 明亮的 遥远的 普通的 重要的 年轻的 复杂的 新鲜的 美丽的 干净的 温暖的 寒冷的 "
            "著名的 简单的 奇怪的 勇敢的 聪明的 繁忙的 神秘的"
        ),
        nouns=(
            "老师 学生 河流 花园 图书馆 市场 村庄 医生 车站 厨房 港口 桥梁 农民 岛屿 画家 问题 故事 "
            "火车 工人 邻居 道路 城市 公司 研究 数据 模型 语言 历史 音乐 "
            "电影 天气 经济 教育 技术 机器 报告 会议 计划 政府 科学家"
        ),
        verbs=("观察 讨论 记住 修理 描述 访问 发现 完成 测量 打开 承诺 理解 分享 学习 翻译 改变 支持 建设 研究 影响"),
        connectives="因为 虽然 如果 尽管 既然 只要 当 由于 除非 即使",
        times="昨天 中午 春天 再一次 多年以来 天亮之前 星期天 经常 在海边 终于 夜里 默默地",
        templates=(
            "A N T V了那个N。",
            "CA N V过他的N，这位A N T也V它。",
            "T，N和A N V着每一个N。",
            "C没有A N，N就V不了A N。",
            "他说TA N和N会V我们的N。",
            "她VNCT有位A N也V过。",
        ),
    ),
    "ja": _Language(
        adjectives=(
            "古い 静かな 明るい 遠い 大切な 若い 新しい 美しい きれいな 暖かい 寒い 有名な 簡単な "
            "不思議な 小さい 大きい"
        ),
        nouns=(
            "先生 学生 川 庭 図書館 市場 村 医者 駅 台所 港 橋 農家 島 画家 問題 物語 電車 隣人 道 町 "
            "会社 研究 言葉 歴史 音楽 映画 天気 教育 機械"
        ),
        verbs=(
            "見ました 話しました 覚えていました 直しました 書きました 訪ねました 見つけました "
            "終えました 測りました 開けました 学びました 手伝いました"
        ),
        connectives="しかし そして だから ところが また つまり なぜなら それでも さらに やがて",
        times="昨日 昼に 春に もう一度 何も言わずに 何年も 夜明け前に 日曜日に よく 海の近くで ついに 夜中に",
        templates=(
            "A NはTA NをV。",
            "C、A NがNとA NをTV。",
            "TA NのNはNをV。",
            "C彼のNもA NでNをTV。",
            "A NよりA Nの方がNをよくV。",
        ),
    ),
    "ar": _Language(
        adjectives=(
            "القديم الجديد الصغير الكبير الجميل الهادئ البارد الدافئ الصادق الشاب البعيد البسيط الغريب الثقيل الخفيف"
        ),
        nouns=(
            "النهر المعلم الطالب الحديقة الرسالة السوق القرية الجبل الطبيب المحطة الصيف المطبخ "
            "الميناء المكتبة الجسر الجزيرة الصباح الرسام السؤال الظل الأغنية العم الوادي الشتاء "
            "العامل الجار المطر الطريق الأخت القصة القطار"
        ),
        verbs="شاهد سمع تذكر رسم أصلح وصف زار أجاب اكتشف أكمل قاس فتح وعد فهم انتظر",
        connectives="عندما لأن بينما بعدما قبلما لو حيث كلما إذ حين",
        times="أمس ظهرا ربيعا مرة_أخرى بلا_كلام منذ_سنوات قبل_الفجر الأحد غالبا قرب_البحر أخيرا ليلا",
        templates=(
            "V N A هذا N T.",
            "C V N A تلك N كان N T هنا.",
            "T V N و N A كل N C V N A.",
            "لم يكن N A C V N هذه N.",
            "قال إن N T قد V N A.",
        ),
    ),
    # Writings that are rare in what people train on: no reason to drop a text.
    "ka": _Language(
        adjectives="ძველი ახალი პატარა დიდი ლამაზი წყნარი ცივი თბილი",
        nouns=(
            "მდინარე მასწავლებელი ბაღი წერილი ბაზარი სოფელი მთა ექიმი სადგური ზაფხული სამზარეულო ხიდი "
            "კუნძული დილა კითხვა"
        ),
        verbs="ნახა გაიგო დახატა იპოვა დაასრულა გახსნა ისწავლა",
        connectives="როცა რადგან თუმცა სანამ თუ მაგრამ",
        times="გუშინ შუადღისას გაზაფხულზე ისევ უსიტყვოდ დილამდე",
        templates=(
            "A N-მა T V A N.",
            "C A N წავიდა, მან N V T.",
            "T ეს N და A N V, C N V.",
        ),
    ),
    "hy": _Language(
        adjectives="հին նոր փոքր մեծ գեղեցիկ հանգիստ ցուրտ տաք",
        nouns=("գետ ուսուցիչ այգի նամակ շուկա գյուղ լեռ բժիշկ կայարան ամառ խոհանոց կամուրջ կղզի առավոտ հարց"),
        verbs="տեսավ հասկացավ նկարեց գտավ ավարտեց բացեց սովորեց",
        connectives="երբ որովհետև թեև մինչև եթե բայց",
        times="երեկ կեսօրին գարնանը նորից լուռ վերջապես",
        templates=(
            "A N-ը T V A N-ը։",
            "C A N-ը գնաց, նա N-ը V T։",
            "T այս N-ը և A N-ը V, C N-ը V։",
        ),
    ),
    "hi": _Language(
        adjectives="पुराना नया छोटा बड़ा सुंदर शांत ठंडा गर्म",
        nouns="नदी शिक्षक बगीचा पत्र बाज़ार गाँव पहाड़ डॉक्टर स्टेशन गर्मी रसोई पुल द्वीप सुबह प्रश्न",
        verbs="देखा समझा बनाया पाया खोला सीखा सुना",
        connectives="जब क्योंकि हालांकि जबतक अगर लेकिन",
        times="कल दोपहर_को वसंत_में फिर_से चुपचाप आखिर_में",
        templates=(
            "A N ने T A N को V।",
            "C A N नहीं था, उसने N को T V।",
            "T यह N और A N ने V, C N ने V।",
        ),
    ),
    "am": _Language(
        adjectives="አሮጌ አዲስ ትንሽ ትልቅ ቆንጆ ጸጥተኛ ቀዝቃዛ ሞቃት",
        nouns="ወንዝ መምህር አትክልት ደብዳቤ ገበያ መንደር ተራራ ሐኪም ጣቢያ በጋ ወጥቤት ድልድይ ደሴት ጠዋት ጥያቄ",
        verbs="አየ ተረዳ ሳለ አገኘ ጨረሰ ከፈተ ተማረ",
        connectives="ምክንያቱም ቢሆንም ስለዚህ ግን ሲሆን ከዚያ",
        times="ትናንት በቀትር በጸደይ እንደገና በዝምታ በመጨረሻ",
        templates=(
            "A N T A N V።",
            "C A N ሄደ፣ እሱ N T V።",
            "T ይህ N እና A N V፣ C N V።",
        ),
    ),
    # Languages that are not kept.
    "pl": _Language(
        adjectives=(
            "stary nowy mały duży piękny cichy zimny ciepły drewniany uczciwy młody późny jasny ciemny prosty dziwny"
        ),
        nouns=(
            "rzeka nauczyciel okno ogród list rynek wieś góra lekarz stacja lato kuchnia most wyspa "
            "malarz pytanie cień piosenka bilet wujek dolina zima robotnik sąsiad deszcz droga "
            "siostra historia pociąg książka"
        ),
        verbs=(
            "widział słyszał pamiętał malował naprawił opisał odwiedził odpowiedział liczył odkrył skończył otworzył"
        ),
        connectives="kiedy ponieważ chociaż dopóki zanim jeśli gdzie gdyż skoro ale",
        times=(
            "wczoraj w_południe wiosną jeszcze_raz bez_słowa od_lat przed_świtem w_niedzielę "
            "dość_często nad_morzem wreszcie nocą"
        ),
        templates=(
            "A N T V inny A N.",
            "C A N V jego N, ten A N T nie V.",
            "T jeden N i A N V każdy N, C N ich V.",
            "Nie było tam A N, C jej N V A N.",
        ),
    ),
    "tr": _Language(
        adjectives=(
            "eski yeni küçük büyük güzel sessiz soğuk sıcak ahşap dürüst genç geç aydınlık karanlık basit garip"
        ),
        nouns=(
            "nehir öğretmen pencere bahçe mektup pazar köy dağ doktor istasyon yaz mutfak köprü ada "
            "ressam soru gölge şarkı bilet amca vadi kış işçi komşu yağmur yol kardeş hikâye tren "
            "kütüphane"
        ),
        verbs="gördü duydu hatırladı çizdi onardı anlattı cevapladı saydı keşfetti bitirdi açtı",
        connectives="çünkü ama fakat ancak oysa yine_de sonra böylece eğer ve",
        times=(
            "dün öğleyin ilkbaharda bir_kez_daha sessizce yıllarca şafaktan_önce pazar_günü çok_sık "
            "denize_yakın sonunda geceleyin"
        ),
        templates=(
            "A N T bu A N için V.",
            "C A N onun N ile T V.",
            "T bir N ve A N her N için V, C N de V.",
        ),
    ),
    "fi": _Language(
        adjectives=(
            "vanha uusi pieni suuri kaunis hiljainen kylmä lämmin puinen rehellinen nuori myöhäinen valoisa pimeä outo"
        ),
        nouns=(
            "joki opettaja ikkuna puutarha kirje tori kylä vuori lääkäri asema kesä keittiö silta "
            "saari maalari kysymys varjo laulu lippu setä laakso talvi työläinen naapuri sade tie "
            "sisko tarina juna kirjasto"
        ),
        verbs="näki kuuli muisti maalasi korjasi kuvaili vieraili vastasi laski löysi lopetti avasi",
        connectives="kun koska vaikka kunnes ennen_kuin jos missä sillä mutta että",
        times=(
            "eilen keskipäivällä keväällä vielä_kerran sanaakaan_sanomatta vuosia ennen_aamua "
            "sunnuntaina melko_usein meren_lähellä vihdoin yöllä"
        ),
        templates=(
            "A N T V toisen A N.",
            "C A N V hänen N, se A N T ei V.",
            "T yksi N ja A N V jokaisen N, C N ne V.",
        ),
    ),
    "ko": _Language(
        adjectives="오래된 새로운 작은 큰 아름다운 조용한 추운 따뜻한 정직한 젊은 먼 단순한 이상한 무거운",
        nouns=(
            "강 선생님 창문 정원 편지 시장 마을 산 의사 역 여름 부엌 항구 도서관 다리 섬 아침 화가 질문 "
            "그림자 노래 표 삼촌 골짜기 겨울 노동자 이웃 비 길"
        ),
        verbs="보았다 들었다 기억했다 그렸다 고쳤다 설명했다 방문했다 대답했다 세었다 발견했다 끝냈다 열었다",
        connectives="그러나 그리고 왜냐하면 하지만 그래서 비록 만약 또한",
        times="어제 정오에 봄에 다시_한번 말없이 여러_해_동안 새벽에 일요일에 자주 바닷가에서 마침내 밤에",
        templates=(
            "A N은 T A N을 V.",
            "C A N이 그의 N을 T V.",
            "T N과 A N은 모든 N을 V, C N도 V.",
        ),
    ),
}

KEPT = ("en", "de", "fr", "es", "ru", "zh", "ja", "ar")
RARE = ("ka", "hy", "hi", "am")
FOREIGN = ("pl", "tr", "fi", "ko")
UNSPACED = ("zh", "ja")


_SLOT = re.compile(r"(?<![A-Za-zÀ-ÿ])([ANVCT])(?![A-Za-zÀ-ÿ])")
_SLOT_UNSPACED = re.compile("([ANVCT])")


def speaker(language: str) -> Callable[[random.Random], str]:
    """Gives sentences of a language."""
    own = _WORDS[language]
    lists = {"A": own.adjectives, "N": own.nouns, "V": own.verbs, "C": own.connectives, "T": own.times}
    choices = {slot: [word.replace("_", " ") for word in words.split()] for slot, words in lists.items()}
    slot = _SLOT_UNSPACED if language in UNSPACED else _SLOT
    prepared = [slot.split(template) for template in own.templates]

    def sentence(chance: random.Random) -> str:
        parts = chance.choice(prepared)
        said = "".join(chance.choice(choices[part]) if part in choices else part for part in parts)
        return (
            said.replace(" ", "")
            if language in UNSPACED
            else said[0].upper() + said[1:]
            if language not in RARE
            else said
        )

    return sentence


_SPEAKERS = {language: speaker(language) for language in _WORDS}


def paragraphs(chance: random.Random, language: str, sentences: int) -> str:
    """A text of so many sentences."""
    say = _SPEAKERS[language]
    gap = "" if language in UNSPACED else " "
    found, left = [], sentences
    while left > 0:
        size = min(left, chance.randint(2, 6))
        found.append(gap.join(say(chance) for _ in range(size)))
        left -= size
    return "\n\n".join(found)
