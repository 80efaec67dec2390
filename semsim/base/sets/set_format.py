"""A reconstruction set on disk: the one format every attack ends in and every judge starts from.

    <set>/originals/<image_id>.png         lossless
    <set>/reconstructions/<image_id>.png   lossless; absent where the attack failed
    <set>/attacked/<image_id>.png          optional: what was really attacked, where training
                                           augmentation had changed the original
    <set>/manifest.parquet                 one row an image
    <set>/run.json                         every setting, versions, seed, seconds, status
    <set>/predictions.parquet              optional: what an independent classifier says
    <set>/jury.parquet                     optional: what each simulated annotator sees

`manifest.parquet` has all of `COLUMNS`; what the writer does not know is null, such as how an
imported picture was shifted. `attacked` equals `original` where nothing was changed.
`predictions.parquet` has `PREDICTION_COLUMNS`, a row for each picture and class: subject is
"original" or "reconstruction", log_probability a natural logarithm, which tells apart what rounds
to 0 or 1.
`jury.parquet` has `JURY_COLUMNS`, a row for each picture, juror and class: the juror says "none"
where it is less certain than its threshold, and what the log-probabilities of a picture leave to 1
is that it sees nothing that could be named.
"""

RUN, MANIFEST, PREDICTIONS = "run.json", "manifest.parquet", "predictions.parquet"
ATTACKED = "attacked"
PICTURES = ("originals", "reconstructions", ATTACKED)  # folders
PREDICTION_COLUMNS = ("image_id", "subject", "class_name", "log_probability")
JURY = "jury.parquet"
JURY_COLUMNS = ("image_id", "subject", "class_name", "juror", "threshold", "log_probability")
COLUMNS = (
    "image_id",  # same id in every set that attacked the same original
    "class_id",
    "class_name",  # "" where it is not known; then class_id is null
    "original",  # path relative to the set
    "reconstruction",  # path relative to the set, null where the attack failed
    "status",  # "ok" or "failed"
    "error",  # why it failed, else ""
    "objective",  # the attack's own final objective
    "shift_x",  # what training augmentation did to the attacked image, in pixels
    "shift_y",
    "flipped",
    ATTACKED,  # path relative to the set, null where it is not known
    "residual",  # the attack's objective without priors, for its picture
    "grey_residual",  # the same for a mid-grey one
    "worse_than_grey",
    "blown_up",  # whether the solution was farther from grey than any picture
    "solver",  # which of the attack's solvers gave the picture
    "found_shift_x",  # the shift the attack estimated; the true one is in shift_x and shift_y
    "found_shift_y",
)
