import{n as e}from"./components-D5peB1z1.js";var t=e(`outline`,`activity`,`Activity`,[[`path`,{d:`M3 12h4l3 8l4 -16l3 8h4`,key:`svg-0`}]]);export{t};
//# sourceMappingURL=IconActivity-SYaS6rzs.js.map