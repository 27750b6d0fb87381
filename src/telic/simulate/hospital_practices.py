"""What the simulated hospital treats: practices, their conditions, and declared codes.

Shares and names are invented; class sizes are the published ones (marked so below).
"""

CORE_SIZES = {
    "Obstetrics & Gynecology": 109,
    "Cardiovascular Disease": 63,
    "Neurology": 47,
    "Ophthalmology": 42,
    "Gastroenterology": 38,
    "Dermatology": 38,
    "Orthopaedic Surgery": 29,
    "Neonatal-Perinatal Medicine": 28,
    "Infectious Disease": 26,
    "Pulmonary Disease": 24,
    "Urology": 20,
    "Neurological Surgery": 20,
}
"""Users per core class, published (recovered from the recalls of Tables 6.7 to 6.9)."""

HIDDEN_SIZES = {"Breast Cancer": 68, "Obesity": 20}
"""Users of the two specialties without a code, published (section 6.5.3)."""

FLAT_CODES = (
    "Internal Medicine",
    "Anesthesiology",
    "Diagnostic Radiology",
    "Pediatrics",
    "Emergency Medicine",
    "Family Medicine",
    "Surgery",
)
"""The most frequent other codes, largest first: cross-cutting, with a flat profile."""

SURGICAL = (
    "Orthopaedic Surgery",
    "Neurological Surgery",
    "Urology",
    "Otolaryngology",
    "Vascular Surgery",
    "Plastic Surgery",
    "Surgical Oncology",
    "Trauma Surgery",
)
"""Practices whose patients an anesthesiologist sees more often than others do."""

_CONDITIONS = {
    "Obstetrics & Gynecology": "Normal delivery; Early or threatened labor; Previous caesarean "
    "section; Hypertension complicating pregnancy; Menstrual disorder; Endometriosis; Benign "
    "neoplasm of uterus; Ovarian cyst; Contraceptive management; Female infertility; Umbilical "
    "cord complication; Abdominal pain",
    "Cardiovascular Disease": "Coronary atherosclerosis; Atrial fibrillation; Congestive heart "
    "failure; Acute myocardial infarction; Heart valve disorder; Cardiomyopathy; Conduction "
    "disorder; Nonspecific chest pain; Cardiac arrest; Pericarditis; Pulmonary heart disease",
    "Neurology": "Epilepsy; Multiple sclerosis; Migraine; Acute cerebrovascular disease; "
    "Paralysis agitans; Transient cerebral ischemia; Peripheral neuropathy; Dementia; Myasthenia "
    "gravis; Convulsions; Intracranial injury",
    "Ophthalmology": "Cataract; Glaucoma; Retinal detachment; Diabetic retinopathy; Macular "
    "degeneration; Inflammation of eye; Strabismus; Corneal disorder; Blindness and vision "
    "defects; Eyelid disorder",
    "Gastroenterology": "Esophageal reflux; Ulcerative colitis; Regional enteritis; "
    "Diverticulosis; Gastrointestinal hemorrhage; Benign neoplasm of colon; Celiac disease; "
    "Biliary tract disease; Pancreatitis; Irritable bowel syndrome; Abdominal pain; Anemia",
    "Dermatology": "Psoriasis; Acne; Atopic dermatitis; Actinic keratosis; Melanoma of skin; "
    "Other cancer of skin; Rosacea; Alopecia; Contact dermatitis; Urticaria; Seborrheic keratosis",
    "Orthopaedic Surgery": "Osteoarthritis of knee; Hip joint replacement; Fracture of lower "
    "limb; Rotator cuff tear; Internal derangement of knee; Fracture of upper limb; Carpal tunnel "
    "syndrome; Acquired foot deformity; Intervertebral disc disorder; Joint pain",
    "Neonatal-Perinatal Medicine": "Liveborn; Low birth weight; Respiratory distress syndrome; "
    "Perinatal jaundice; Neonatal sepsis; Apnea of prematurity; Feeding problem of newborn; "
    "Patent ductus arteriosus; Hypoglycemia of newborn; Intraventricular hemorrhage of newborn",
    "Infectious Disease": "HIV infection; Septicemia; Osteomyelitis; Endocarditis; Tuberculosis; "
    "Mycosis; Viral hepatitis C; Clostridium difficile infection; Fever of unknown origin; "
    "Cellulitis; Bacterial pneumonia",
    "Pulmonary Disease": "Chronic obstructive pulmonary disease; Asthma; Pulmonary fibrosis; "
    "Sarcoidosis; Respiratory failure; Pleural effusion; Bronchiectasis; Obstructive sleep apnea; "
    "Bacterial pneumonia; Lung nodule; Pulmonary embolism",
    "Urology": "Calculus of kidney; Elevated prostate specific antigen; Hyperplasia of prostate; "
    "Hematuria; Retention of urine; Impotence of organic origin; Bladder neck obstruction; Cancer "
    "of prostate; Cancer of bladder; Hydronephrosis; Urinary tract infection",
    "Neurological Surgery": "Spinal stenosis; Intervertebral disc disorder; Cerebral aneurysm; "
    "Benign neoplasm of brain; Hydrocephalus; Intracranial injury; Subdural hemorrhage; Cancer of "
    "brain; Spinal cord injury; Acute cerebrovascular disease",
    "Breast Cancer": "Lump or mass in breast; Malignant neoplasm of breast; Diffuse cystic "
    "mastopathy; Abnormal mammogram; Benign neoplasm of breast; Personal history of malignant "
    "neoplasm of breast; Galactorrhea; Unspecified breast disorder; Carcinoma in situ of breast; "
    "Other sign and symptom in breast",
    "Obesity": "Morbid obesity; Obesity, unspecified; Body mass index 40 and over; Obstructive "
    "sleep apnea; Hypersomnia with sleep apnea; Bariatric surgery status; Edema; Other dyspnea; "
    "Dysmetabolic syndrome; Nutritional counselling",
    "Hematology & Oncology": "Leukemia; Non-Hodgkin lymphoma; Multiple myeloma; Maintenance "
    "chemotherapy; Secondary malignancy; Neutropenia; Coagulation disorder; Sickle cell anemia; "
    "Cancer of lung; Cancer of ovary; Anemia",
    "Nephrology": "Chronic kidney disease; End stage renal disease; Acute renal failure; "
    "Nephritis; Kidney transplant status; Hyperpotassemia; Secondary hyperparathyroidism; "
    "Proteinuria; Hypertensive renal disease; Hematuria",
    "Rheumatology": "Rheumatoid arthritis; Systemic lupus erythematosus; Gout; Ankylosing "
    "spondylitis; Vasculitis; Fibromyalgia; Scleroderma; Polymyalgia rheumatica; Joint pain",
    "Endocrinology": "Diabetes type 1; Diabetes with complications; Hypothyroidism; Thyroid "
    "nodule; Osteoporosis; Pituitary disorder; Adrenal disorder; Hyperparathyroidism; Diabetic "
    "retinopathy; Dysmetabolic syndrome",
    "Psychiatry": "Major depressive disorder; Bipolar disorder; Schizophrenia; Anxiety disorder; "
    "Alcohol dependence; Opioid dependence; Personality disorder; Eating disorder; Attention "
    "deficit disorder; Suicidal ideation",
    "Otolaryngology": "Chronic sinusitis; Hearing loss; Otitis media; Deviated septum; "
    "Tonsillitis; Vocal cord disorder; Cancer of head and neck; Vertigo; Thyroid nodule; Allergic "
    "rhinitis",
    "Vascular Surgery": "Peripheral atherosclerosis; Abdominal aortic aneurysm; Varicose veins; "
    "Carotid stenosis; Deep vein thrombosis; Chronic ulcer of leg; Gangrene; Arterial embolism",
    "Plastic Surgery": "Breast reconstruction status; Hypertrophic scar; Open wound of face; "
    "Burn; Cleft lip; Facial fracture; Hand injury; Breast hypertrophy",
    "Physical Medicine": "Rehabilitation care; Late effects of stroke; Gait abnormality; "
    "Spasticity; Spinal cord injury; Amputation status; Low back pain; Muscle weakness",
    "Transplant Surgery": "Liver transplant status; Kidney transplant status; Cirrhosis of "
    "liver; Complication of transplant; Hepatic encephalopathy; Ascites; Cancer of liver",
    "Trauma Surgery": "Rib fracture; Pelvic fracture; Injury of spleen; Gunshot wound; Motor "
    "vehicle accident; Intracranial injury; Open wound of trunk; Hemorrhagic shock",
    "Allergy & Immunology": "Allergic rhinitis; Food allergy; Asthma; Urticaria; Immunity "
    "disorder; Anaphylaxis; Drug allergy; Chronic sinusitis",
    "Geriatric Medicine": "Dementia; Fall; Osteoporosis; Pressure ulcer; Urinary incontinence; "
    "Delirium; Malnutrition; Hip fracture; Muscle weakness",
    "Pain Medicine": "Low back pain; Chronic pain syndrome; Complex regional pain syndrome; Neck "
    "pain; Sciatica; Opioid dependence; Postherpetic neuralgia",
    "Reproductive Endocrinology": "Female infertility; Polycystic ovaries; Recurrent pregnancy "
    "loss; Male infertility; Premature menopause; Ovarian hyperstimulation; Endometriosis",
    "Surgical Oncology": "Cancer of colon; Cancer of pancreas; Cancer of stomach; Cancer of "
    "rectum; Sarcoma; Secondary malignancy; Intestinal obstruction; Cancer of liver",
    "Adolescent Medicine": "Attention deficit disorder; Well child examination; Acne; Eating "
    "disorder; Short stature; Scoliosis; Concussion; Immunization",
}

_GENERAL = (
    "Essential hypertension; Other screening; Other aftercare; Hyperlipidemia; Diabetes "
    "without complication; Abdominal pain; Nonspecific chest pain; Urinary tract "
    "infection; Malaise and fatigue; Esophageal reflux; Anemia; Fluid and electrolyte "
    "disorder; Hypothyroidism; Medical examination; Joint pain; Upper respiratory "
    "infection; Tobacco use disorder; Anxiety disorder; Low back pain; Headache; Other "
    "skin disorder; Nausea and vomiting; Cough; Fever; Other lower respiratory disease; "
    "Syncope; Dizziness; Edema; Weight loss; Constipation; Allergic rhinitis; Insomnia; "
    "Major depressive disorder; Vitamin D deficiency; Immunization; Obesity, unspecified; "
    "Other dyspnea; Palpitations; Rash; Other connective tissue disease"
)

GENERAL_CONDITIONS = tuple(_GENERAL.split("; "))
"""Conditions any encounter may carry, most frequent first."""

N_CODES = 603
"""Diagnosis categories, published (section 6.3)."""


def conditions() -> dict[str, tuple[str, ...]]:
    """Return the conditions of every practice, padded with unnamed ones to `N_CODES` in all."""
    named = {practice: text.split("; ") for practice, text in _CONDITIONS.items()}
    known = {name for names in named.values() for name in names} | set(GENERAL_CONDITIONS)
    practices = list(named)
    for extra in range(N_CODES - len(known)):
        practice = practices[extra % len(practices)]
        named[practice].append(f"Unnamed condition {extra + 1}")
    return {practice: tuple(names) for practice, names in named.items()}
