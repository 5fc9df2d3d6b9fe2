"""Country codes (ISO 3166-1 alpha-2) that search backends accept."""

from __future__ import annotations

from typing import Final

BRAVE_COUNTRIES: Final = frozenset(
    {
        "AR", "AT", "AU", "BE", "BR", "CA", "CH", "CL", "CN", "DE", "DK", "ES", "FI", "FR", "GB",
        "GR", "HK", "ID", "IN", "IT", "JP", "KR", "MX", "MY", "NL", "NO", "NZ", "PH", "PL", "PT",
        "RU", "SA", "SE", "TR", "TW", "US", "ZA",
    }
)  # fmt: skip
"""Others are answered with status 422."""

COUNTRY_NAMES: Final = {
    "AE": "united arab emirates", "AF": "afghanistan", "AL": "albania", "AM": "armenia", "AR": "argentina",
    "AT": "austria", "AU": "australia", "AZ": "azerbaijan", "BA": "bosnia and herzegovina",
    "BD": "bangladesh", "BE": "belgium", "BG": "bulgaria", "BH": "bahrain", "BO": "bolivia", "BR": "brazil",
    "BY": "belarus", "CA": "canada", "CH": "switzerland", "CL": "chile", "CM": "cameroon", "CN": "china",
    "CO": "colombia", "CR": "costa rica", "CU": "cuba", "CY": "cyprus", "CZ": "czech republic",
    "DE": "germany", "DK": "denmark", "DO": "dominican republic", "DZ": "algeria", "EC": "ecuador",
    "EE": "estonia", "EG": "egypt", "ES": "spain", "ET": "ethiopia", "FI": "finland", "FR": "france",
    "GB": "united kingdom", "GE": "georgia", "GH": "ghana", "GR": "greece", "GT": "guatemala",
    "HN": "honduras", "HR": "croatia", "HU": "hungary", "ID": "indonesia", "IE": "ireland", "IL": "israel",
    "IN": "india", "IQ": "iraq", "IR": "iran", "IS": "iceland", "IT": "italy", "JM": "jamaica",
    "JO": "jordan", "JP": "japan", "KE": "kenya", "KG": "kyrgyzstan", "KH": "cambodia", "KR": "south korea",
    "KW": "kuwait", "KZ": "kazakhstan", "LB": "lebanon", "LI": "liechtenstein", "LK": "sri lanka",
    "LT": "lithuania", "LU": "luxembourg", "LV": "latvia", "MA": "morocco", "MC": "monaco", "MD": "moldova",
    "ME": "montenegro", "MG": "madagascar", "MK": "north macedonia", "MM": "myanmar", "MN": "mongolia",
    "MT": "malta", "MU": "mauritius", "MX": "mexico", "MY": "malaysia", "MZ": "mozambique", "NA": "namibia",
    "NG": "nigeria", "NI": "nicaragua", "NL": "netherlands", "NO": "norway", "NP": "nepal",
    "NZ": "new zealand", "OM": "oman", "PA": "panama", "PE": "peru", "PH": "philippines", "PK": "pakistan",
    "PL": "poland", "PT": "portugal", "PY": "paraguay", "QA": "qatar", "RO": "romania", "RS": "serbia",
    "RU": "russia", "RW": "rwanda", "SA": "saudi arabia", "SE": "sweden", "SG": "singapore",
    "SI": "slovenia", "SK": "slovakia", "SN": "senegal", "SV": "el salvador", "SY": "syria",
    "TH": "thailand", "TN": "tunisia", "TR": "turkey", "TW": "taiwan", "TZ": "tanzania", "UA": "ukraine",
    "UG": "uganda", "US": "united states", "UY": "uruguay", "UZ": "uzbekistan", "VE": "venezuela",
    "VN": "vietnam", "YE": "yemen", "ZA": "south africa", "ZM": "zambia", "ZW": "zimbabwe",
}  # fmt: skip
"""Tavily expects names."""
