"""What of each paper was not run here, and why: told by pages, `--plan` and the page Papers."""

from collections.abc import Mapping
from typing import NamedTuple


class NotRun(NamedTuple):
    """what: a part of a paper. why: in words that end a sentence."""

    what: str
    why: str

    @property
    def said(self) -> str:
        """Both in a sentence."""
        return f"{self.what}: {self.why}."


# By the name of the reproduction: what its section of the page Papers is called.
SECTIONS: Mapping[str, str] = {
    "semsim": "SemSim: do metrics agree with people?",
    "copa": "COPA: which layers give an image away?",
    "ensembler": "Ensembler: can many bodies on the server hide the image?",
    "pbpfl": "PBPFL: can a server hide its model from its clients?",
    "deployed": "Deployed: which metric still agrees with people?",
    "everything": "Everything: which attack gets past which defence?",
}

# By the same name. A line goes when its numbers are in benchmarks/README.md.
NOT_RUN: Mapping[str, tuple[NotRun, ...]] = {
    "semsim": (
        NotRun(
            "Votes of people on the 70 targets and CAFE's, and so Tables 1 and 2 and Figures 3, 5, "
            "6, 7 and 9 of them",
            "238,000 votes, five people a picture, 112,000 of them for Table 1; the command writes "
            "the studies",
        ),
        NotRun(
            "The 70 targets and the four attacks at the paper's size",
            "2,255 core-days by a few steps measured, and no GPU was at hand",
        ),
        NotRun(
            "Imagenette and Stanford Dogs at small",
            "no pictures of these kinds come with the tools; the other three have stand-ins",
        ),
        NotRun(
            "SemSim as a ResNet50 with the paper's settings, in Figure 7B as well",
            "small has a ResNet18 of 30 epochs in batches of 16, and compares it with a LeNet",
        ),
        NotRun(
            "Pictures of CIFAR-100 at small, by --images",
            "some hundreds of them were at hand, too few to train targets on",
        ),
        NotRun(
            "CAFE on the networks of the other attacks",
            "a participant of vertical learning sees a part of a picture; ours are two networks "
            "made for that, under the same seven strategies",
        ),
        NotRun(
            "Mixed precision on a GPU",
            "none was at hand; what it changes was measured on the CPU, what it saves was not",
        ),
        NotRun(
            "LPIPS and FID, two of the six columns of Tables 1 and 2",
            "their weights do not come with the tools; who has them puts them into checkpoints",
        ),
        NotRun(
            "A second seed at small, and Figures 3, 5 and 6 in numbers on digits and faces",
            "two and a half hours of one core each; the command draws the figures of every row",
        ),
        NotRun(
            "The two classifiers of Section 4.4 as judges (τ 0.70 and 0.50)",
            "neither they nor the paper's reconstructions, which they judge, are here",
        ),
    ),
    "deployed": (
        NotRun(
            "Votes of people",
            "every vote is a program's; the sets it makes are ready for a study",
        ),
        NotRun("A second seed at small", "the rows are of one seed each, an hour of one core"),
        NotRun("LPIPS", "its weights do not come with the tools"),
        NotRun(
            "Paper (CIFAR-100, 104 originals, InvGrad at its own budget)",
            "those pictures do not come with the tools; by a few steps measured about five "
            "core-days",
        ),
        NotRun(
            "DP-SGD on updates of several steps, secure aggregation, compressed updates",
            "no row has them; a campaign takes the first by --share and --strategy",
        ),
    ),
    "everything": (
        NotRun("Votes of people", "every vote is a program's"),
        NotRun(
            "Paper (CIFAR-100, three networks, 100 originals, each attack at its own budget)",
            "it takes a GPU",
        ),
        NotRun(
            "A second network, data set or seed at small",
            "the map is of one of each, an hour of one core",
        ),
        NotRun("LPIPS", "its weights do not come with the tools"),
        NotRun(
            "CAFE",
            "it needs rounds of vertical federated learning, not the gradient of a classifier",
        ),
        NotRun(
            "Noise, ensembles and masks of split inference and of PBPFL as columns",
            "they are no strategies of a classifier's training; each has its own tables",
        ),
        NotRun(
            "Updates of several steps and batches of a client",
            "the map is of one gradient; reproduce deployed has them, under InvGrad",
        ),
    ),
    "copa": (
        NotRun(
            "The two pictures of Figures 1 and 2 and of Table 2",
            "the paper does not say which of CIFAR-10 they are; ours are 16 others, three "
            "networks each",
        ),
        NotRun(
            "Search under the paper's own condition for the pull-back, apart",
            "on CNN3 it holds on the same layers as ours, so that nothing differs",
        ),
    ),
    "ensembler": (
        NotRun(
            "ResNet-18 with N = 10 on CIFAR-10 and CIFAR-100, 64 pixels of CelebA-HQ",
            "they take a GPU; at small two of four, three of six and five of six bodies are "
            "chosen, with --vgg16 four of five",
        ),
        NotRun(
            "On photographs, where the published attack works by SSIM, too: Shredder, DR-single, "
            "DR-ensemble, five bodies of which four count, attacks on one body and the oracle",
            "--vgg16 --images DIR --shadow-start identity has them; some four hours of one core",
        ),
        NotRun(
            "A second training of each defence in Table 1 on a network from which the published "
            "attack gets pictures undefended",
            "--vgg16 has it, with three attacks on the first; three and a half hours of one core",
        ),
        NotRun(
            "Three runs of each body apart, and of the oracle, in Table 3 at small",
            "one was made; an hour of one core",
        ),
        NotRun(
            "A second training in Tables 3 and 4 and in Figures 2 and 3 at small",
            "one was made; some five hours of one core",
        ),
        NotRun(
            "Figure 2 at three, five and seven to ten units of the client, and at three of the end",
            "at small it has one, two, four and six, from four on next to nothing comes back there",
        ),
        NotRun(
            "Table 4 on the paper's own sentences, with its transformer of 512 channels",
            "that text does not come with the tools and the size takes a GPU; ours are sentences "
            "of a grammar, with 64 channels",
        ),
    ),
    "pbpfl": (
        NotRun(
            "Bank marketing, retina and skin pictures (UBMD, ABD, LDC)",
            "they do not come with the tools; who has them names them by --table, --abd and --ldc, "
            "and other data stand in until then",
        ),
        NotRun("200 epochs", "days of one core; 20 of the table and 12 of the pictures were run"),
        NotRun(
            "Preset paper (all at 200 epochs, InvGrad at its own budget), on a GPU",
            "it computes on the CPU alone, where it takes days; what leaks of ResNet20 and Table 5 "
            "on 32 pictures of 64 pixels are in it alone",
        ),
        NotRun(
            "Federated training on machines of their own",
            "three processes on one machine speak through its network with TLS; no second was "
            "at hand",
        ),
    ),
}


def not_run_text(name: str) -> str:
    """The list of one reproduction, a line a part."""
    lines = [f"- {one.said}" for one in NOT_RUN[name]]
    return "\n".join(["Not run so far:", *lines])
